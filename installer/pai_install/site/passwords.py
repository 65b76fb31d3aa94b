"""Passwords that no user can have. Pure."""

from __future__ import annotations

from pai_install.site.user_names import user_name

SHORTEST, LONGEST = 8, 256
# default passwords of OpenPAI's documents and samples, and the most frequent ones
PUBLIC_PASSWORDS = frozenset(
    {"admin-password", "pai-secret", "password", "password1", "passw0rd", "12345678", "123456789", "1234567890"}
    | {"qwertyui", "qwerty123", "11111111", "iloveyou", "administrator", "your-password", "changeme", "changeit"}
)


def is_public(password: str) -> bool:
    """Whether everyone knows or guesses it."""
    return password.lower() in PUBLIC_PASSWORDS


def password_problem(password: str) -> str:
    """The reason why a user cannot have this password, or ""."""
    if len(password) < SHORTEST:
        return f"has fewer than {SHORTEST} characters"
    if len(password) > LONGEST:
        return f"has more than {LONGEST} characters"
    return "is a public default" if is_public(password) else ""


def first_password_problem(user: str, password: str) -> str:
    """The same for the first administrator, whose password is not its name either.

    The name of another user is a valid password, because OpenPAI's own API test makes such a user.
    """
    return password_problem(password) or ("is the name of the user" if user_name(password) == user else "")
