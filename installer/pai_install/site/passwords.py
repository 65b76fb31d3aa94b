"""Passwords that count as none."""

from __future__ import annotations

# default passwords of OpenPAI's documents and samples, and the most frequent ones
PUBLIC_PASSWORDS = frozenset(
    {"admin-password", "pai-secret", "password", "password1", "passw0rd", "12345678", "123456789", "1234567890"}
    | {"qwertyui", "qwerty123", "11111111", "iloveyou", "administrator", "your-password", "changeme", "changeit"}
)


def is_public(password: str) -> bool:
    """Whether everyone knows or guesses it."""
    return password.lower() in PUBLIC_PASSWORDS
