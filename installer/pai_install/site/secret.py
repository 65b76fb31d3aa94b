"""Secrets of a site: written in the file, encrypted by ansible-vault, or in a file or the environment.

A secret that is unavailable now (no vault password, variable not set) does not prevent reading the site. It is a
warning, and an error with the same sentence on access to its value.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, SecretStr, ValidationInfo, WithJsonSchema

from pai_install.documents.document import Document, Text
from pai_install.documents.problem import short
from pai_install.documents.scalars import invalid, note
from pai_install.errors import ExitCode, PaiError

VAULT_PASSWORD_VARIABLE = "ANSIBLE_VAULT_PASSWORD_FILE"  # noqa: S105 - a name, not a secret
_VAULT_HEAD = "$ANSIBLE_VAULT;"
_MAX_SECRET_BYTES = 64 * 1024


class MissingSecret(SecretStr):
    """A secret with an unavailable value. Access raises PaiError (exit code: site invalid)."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__("")
        self.reason = reason
        self.remedy = remedy

    def get_secret_value(self) -> str:
        """Raises PaiError with the missing source and the remedy."""
        raise PaiError(self.reason, code="secret-unreadable", remedy=self.remedy, exit_code=ExitCode.SITE_INVALID)


def resolve_secret(value: object, folder: Path) -> SecretStr:
    """A secret as a site may write it -> its value, or a MissingSecret.

    value: text, ansible-vault text, {"env": NAME} or {"file": PATH} (relative to `folder`, the site's).
    Raises ValueError for anything else.
    """
    match value:
        case SecretStr():
            return value
        case {"env": str(name), **rest} if name and not rest:
            return _from_environment(str(name))
        case {"file": str(name), **rest} if name and not rest:
            return _from_file(str(name), folder)
        case dict() | list() | None:
            raise ValueError("write text, !vault, {file: PATH} or {env: NAME}")
        case _:
            text = str(value)
            return _open_vault(text) if text.startswith(_VAULT_HEAD) else SecretStr(text)


def site_path(name: str, folder: Path) -> Path:
    """A path written in a site: `~` is the user's home, a relative one starts at the site's folder.

    Always absolute: Ansible runs elsewhere.
    """
    return (folder / Path(name).expanduser()).absolute()


def _from_environment(name: str) -> SecretStr:
    content = "" if "\0" in name or "=" in name else os.environ.get(name, "")
    if not content:
        return MissingSecret(f"the environment variable {short(name)} is not set", "export it before the run")
    return SecretStr(content)


def _from_file(name: str, folder: Path) -> SecretStr:
    try:
        path = site_path(name, folder)
        # Reading a pipe or a device could wait without end.
        if not stat.S_ISREG(path.stat().st_mode):
            return MissingSecret(f"{short(str(path))} is not a file", "write the secret into a file")
        with path.open("rb") as handle:
            # A secret is short. The limit keeps a wrong file, such as a disk image, out of memory.
            return SecretStr(handle.read(_MAX_SECRET_BYTES).decode().rstrip("\r\n"))
    except (OSError, ValueError, RuntimeError) as error:
        reason = f"the secret file {short(name)} cannot be read: {type(error).__name__}"
        return MissingSecret(reason, "write the secret into it, mode 0600")


def _open_vault(sealed: str) -> SecretStr:
    password_file = os.environ.get(VAULT_PASSWORD_VARIABLE, "")
    if not password_file:
        remedy = f"set {VAULT_PASSWORD_VARIABLE} to the file with the vault's password"
        return MissingSecret("is sealed by ansible-vault", remedy)
    from ansible.errors import AnsibleError  # noqa: PLC0415 - slow to import
    from ansible.parsing.vault import (  # noqa: PLC0415
        VaultLib,
        VaultSecret,
    )

    try:
        # Ansible strips white space around the password as well. Editors add a line end.
        password = Path(password_file).expanduser().read_bytes().strip()
        opened = VaultLib([("default", VaultSecret(password))]).decrypt(sealed.strip().encode())
        return SecretStr(opened.decode().rstrip("\r\n"))
    except (AnsibleError, OSError, ValueError, RuntimeError) as error:
        reason = f"cannot be opened with the password in {short(password_file)}: {type(error).__name__}"
        return MissingSecret(reason, "check the vault's password")


def _read_secret(value: object, info: ValidationInfo) -> SecretStr:
    secret = read_quiet_secret(value, info)
    if isinstance(value, str) and not isinstance(secret, MissingSecret) and not value.startswith(_VAULT_HEAD):
        note(value, info, "plain-secret", "is a secret in plain text", "use !vault, {file: PATH} or {env: NAME}")
    return secret


def read_quiet_secret(value: object, info: ValidationInfo) -> SecretStr:
    """A secret where OpenPAI's files have it in plain text: that alone gives no warning."""
    folder = info.context.folder if isinstance(info.context, Document) else Path()
    try:
        secret = resolve_secret(value, folder)
    except ValueError as error:
        raise invalid("secret", "is not a secret", str(error)) from None
    if isinstance(value, Text) and value.vault and not value.startswith(_VAULT_HEAD):
        raise invalid("vault", "is not an ansible-vault string", "make it with ansible-vault encrypt_string")
    if isinstance(secret, MissingSecret):
        note(value, info, "secret-missing", secret.reason, secret.remedy)
    elif isinstance(value, dict) and "file" in value:
        _warn_mode(site_path(str(value["file"]), folder), value, info)
    return secret


def _warn_mode(path: Path, value: object, info: ValidationInfo) -> None:
    if path.stat().st_mode & 0o077:
        note(value, info, "secret-mode", f"{path} can be read by others", f"chmod 600 {path}")


def _elsewhere(kind: str) -> dict[str, object]:
    return {
        "type": "object",
        "properties": {kind: {"type": "string"}},
        "required": [kind],
        "additionalProperties": False,
    }


SECRET_SCHEMA = {
    "description": "Text, an ansible-vault string, {file: PATH} or {env: NAME}.",
    "anyOf": [{"type": "string"}, {"type": "number"}, _elsewhere("env"), _elsewhere("file")],
}
Secret = Annotated[SecretStr, BeforeValidator(_read_secret), WithJsonSchema(SECRET_SCHEMA)]
