"""Users of an identity provider (OpenID Connect): their names in the API server, and their group memberships. Pure.

Their names and groups begin with a prefix, so that they never equal those of a basic user or of the system.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pai_install.scheduling.admission import literal
from pai_install.site.directory import Directory
from pai_install.site.groups import PlacedGroup, administrates
from pai_install.users.model import ACCOUNT_PREFIX, ADMIN, GROUP, MEMBER
from pai_install.users.rights import RBAC

Object = dict[str, Any]

PREFIX = "oidc:"
# Of a label; no name of a user of ours has a '.'.
_LABEL_PREFIX = "oidc."
# What names have and labels cannot, and what stands for it, in the order of replacement. '_' alone begins such a
# word, and none of these words begins another: two names never become one.
_WORDS = (("_", "__"), ("@", "_at_"), ("+", "_plus_"), ("|", "_bar_"), ("#", "_hash_"))
_LABEL = "^[A-Za-z0-9][-A-Za-z0-9_.]{0,61}[A-Za-z0-9]$"


def label(name: str) -> str:
    """Returns the label of a user's objects as an expression (CEL). name: an expression of the name with prefix."""
    replaced = "".join(f".replace({literal(old)}, {literal(new)})" for old, new in _WORDS)
    return f"({literal(_LABEL_PREFIX)} + {name}.substring({len(PREFIX)}){replaced})"


def owner_of(name: str) -> str:
    """Returns the value of `label` for one name with prefix. The name of a basic user stays as it is."""
    if not name.startswith(PREFIX):
        return name
    found = name.removeprefix(PREFIX)
    for old, new in _WORDS:
        found = found.replace(old, new)
    return f"{_LABEL_PREFIX}{found}"


def api_user(name: str) -> str:
    """The name of a user at the API server. name: of a user of ours, or with PREFIX."""
    return name if name.startswith(PREFIX) else f"{ACCOUNT_PREFIX}{name}"


def authenticator(directory: Directory) -> Object:
    """An entry of `jwt` in the API server's AuthenticationConfiguration."""
    issuer: Object = {"url": directory.issuer, "audiences": [directory.client]}
    if directory.authority:
        issuer["certificateAuthority"] = directory.authority
    return {
        "issuer": issuer,
        "claimValidationRules": list(_of_claims(directory)),
        "claimMappings": {
            "username": {"claim": directory.username, "prefix": PREFIX},
            "groups": {"claim": directory.groups, "prefix": PREFIX},
        },
        # A name that fits into no label could own no object. So the person is told at sign-in.
        "userValidationRules": [
            {
                "expression": f"{label('user.username')}.matches({literal(_LABEL)})",
                "message": "the name fits into no label: it is too long, has more than letters, digits and -_.@+|#, "
                "or does not end with a letter or digit",
            }
        ],
    }


def _of_claims(directory: Directory) -> Iterator[Object]:
    """Who may write any address into their own entry of a directory could be anybody."""
    if directory.username == "email":
        verified = "has(claims.email_verified) && claims.email_verified == true"
        yield {"expression": verified, "message": "the address is not verified"}


def bindings(groups: Iterable[PlacedGroup]) -> Iterator[Object]:
    """Yields the bindings that make users of an identity provider members of their groups, and administrators."""
    for group in groups:
        external = group.group.external_name
        if external:
            yield _binding("RoleBinding", {"name": "pai-directory", "namespace": group.namespace}, group, MEMBER)
            if administrates(group):
                yield _binding("ClusterRoleBinding", {"name": f"pai-directory-{group.namespace}"}, group, ADMIN)


def _binding(kind: str, metadata: Object, group: PlacedGroup, role: str) -> Object:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": kind,
        "metadata": {**metadata, "annotations": {GROUP: group.name}},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": f"{PREFIX}{group.group.external_name}"}],
    }
