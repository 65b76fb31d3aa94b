"""An inventory that others may read: without the passwords of machines, and no login in any address. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pai_install.documents.problem import without_login

_PASSWORDS = frozenset({"ansible_password", "ansible_become_password"})
# secrets of roles: without them a role would set up something else, so a play must not begin
_SECRETS = frozenset(
    {
        "auth_token",
        "password",
        "access_key",
        "component_store_private_key",
        "docker_cache_private_key",
        "docker_cache_users",
        "docker_cache_logins",
        "secret_data",
    }
)
# a template of ours: Ansible ends with this sentence where a play needs the value
LEFT_OUT = "{{ undef(hint='left out as a secret: pai-install inventory --show-secrets prints it') }}"


def without_secrets(value: Any) -> Any:  # noqa: ANN401 - any plain value, as `literal` makes it
    """Returns the value without passwords. A text with credentials becomes a text that Ansible refuses with a hint."""
    match value:
        case str():
            return LEFT_OUT if any(without_login(word) != word for word in value.split()) else value
        case Mapping():
            kept = {key: _shown(str(key), entry) for key, entry in value.items() if key not in _PASSWORDS}
            return LEFT_OUT if list(kept.values()) == [LEFT_OUT] and "__ansible_unsafe" in kept else kept
        case list() | tuple():
            return [without_secrets(entry) for entry in value]
        case _:
            return value


def _shown(name: str, value: Any) -> Any:  # noqa: ANN401 - any plain value, as `literal` makes it
    return LEFT_OUT if value and name in _SECRETS else without_secrets(value)
