"""Sign-in with name and password."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus

from pai_install.console.errors import RestError, invalid
from pai_install.console.sign_in.hashing import RememberedPasswords, hashed, matches
from pai_install.console.sign_in.known_users import KnownUsers
from pai_install.console.sign_in.limits import HashSlots, SignInLimits
from pai_install.console.sign_in.store import CredentialStore
from pai_install.site.passwords import LONGEST, password_problem
from pai_install.site.user_names import user_name, why_no_name
from pai_install.users.credentials import HASH, SINCE, Credential, CredentialKind, fingerprint
from pai_install.users.first_administrator import HASH as FIRST_HASH
from pai_install.users.first_administrator import is_first_password

# clients of OpenPAI compare these words
_WRONG = "Password is incorrect."


@dataclass(frozen=True)
class Passwords:
    """Passwords of users of `user add`. hide_users: an unknown user and a wrong password have the same error."""

    store: CredentialStore
    users: KnownUsers
    hide_users: bool = False
    limits: SignInLimits = field(default_factory=SignInLimits)
    slots: HashSlots = field(default_factory=HashSlots)
    remembered: RememberedPasswords = field(default_factory=RememberedPasswords)

    def sign_in(self, name: str, password: str, address: str) -> str:
        """The user with this password. Raises RestError. name: as OpenPAI takes it."""
        if not name or not password:
            # clients of OpenPAI send these when a cluster is added: no attack
            raise invalid("name and password are required")
        if len(password) > LONGEST or len(name) > LONGEST:
            raise invalid(f"name and password have at most {LONGEST} characters")
        user = user_name(name)
        self.limits.check(user, address)
        valid = not why_no_name(user)
        uid = self.users.uid(user) if valid else ""
        hash_text = self._hash(user, uid) if valid else ""
        right = self._right(user, password, hash_text)
        if not right and uid and not hash_text:
            right = self._first(user, uid, password)
        if not right and valid and (newer := self._hash(user, uid, fresh=True)) != hash_text:
            # another replica has just written it
            right = self._right(user, password, newer)
        if not right:
            self.limits.failed(user, address)
            raise _refused(name, known=bool(uid) or self.hide_users)
        self.limits.succeeded(user)
        return user

    def write(self, user: str, uid: str, password: str) -> None:
        """Sets the password of a user. Raises RestError for a short or public one."""
        if why := password_problem(password):
            raise invalid(f"the password {why}: choose another one")
        with self.slots.slot():
            hash_text = hashed(password)
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        self.store.put(Credential(CredentialKind.PASSWORD, user, user, uid, data={HASH: hash_text, SINCE: now}))

    def by_link(self, secret: str, password: str) -> str:
        """Sets the password of the user of a link, which counts once. Returns the user. Raises RestError."""
        link = self.link(secret)
        if why := password_problem(password):
            raise invalid(f"the password {why}: choose another one")
        if not self.store.take(link):
            raise _used_up()
        self.write(link.user, link.uid, password)
        return link.user

    def link(self, secret: str) -> Credential:
        """The link. Raises RestError for one that is over, used, or of an account that is gone."""
        link = self.store.find(CredentialKind.LINK, fingerprint(secret), fresh=True)
        if link is None or not link.uid or self.users.uid(link.user) != link.uid:
            raise _used_up()
        return link

    def _first(self, user: str, uid: str, password: str) -> bool:
        """Whether it is the password that the site gave its first administrator, who has no other one yet."""
        found = self.store.find(CredentialKind.FIRST, user)
        if found is None:
            return False
        with self.slots.slot():
            right = is_first_password(password, found.data.get(FIRST_HASH, ""))
        if right:
            self.write(user, uid, password)
        return right

    def _hash(self, user: str, uid: str, *, fresh: bool = False) -> str:
        found = self.store.find(CredentialKind.PASSWORD, user, fresh=fresh)
        return found.data.get(HASH, "") if found is not None and uid and found.uid == uid else ""

    def _right(self, user: str, password: str, hash_text: str) -> bool:
        if hash_text and self.remembered.has(user, password, hash_text):
            return True
        with self.slots.slot():
            right = matches(password, hash_text)
        if right:
            self.remembered.add(user, password, hash_text)
        return right


def _refused(name: str, *, known: bool) -> RestError:
    if known:
        return RestError(HTTPStatus.BAD_REQUEST, "IncorrectPasswordError", _WRONG)
    return RestError(HTTPStatus.BAD_REQUEST, "NoUserError", f"User {name} is not found.")


def _used_up() -> RestError:
    return RestError(
        HTTPStatus.BAD_REQUEST, "InvalidParametersError", "this link is used or expired: ask for another one"
    )
