"""Secrets of a site: written in the file, sealed by ansible-vault, or kept in a file or the environment.

A secret that cannot be had now (no vault password, variable not set) does not stop reading the site: it is a
warning, and an error with the same sentence for whoever asks for its value.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, SecretStr, ValidationInfo, WithJsonSchema
from pydantic_core import PydanticCustomError

from pai_install.errors import ExitCode, PaiError
from pai_install.site.document import Document, Text
from pai_install.site.scalars import invalid, note, shown

_MAX_SECRET_BYTES = 64 * 1024


class MissingSecret(SecretStr):
    """A secret whose value cannot be had here; asking for it raises PaiError (exit code: site invalid)."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__("")
        self.reason = reason
        self.remedy = remedy

    def get_secret_value(self) -> str:
        raise PaiError(self.reason, remedy=self.remedy, exit_code=ExitCode.SITE_INVALID)


def _read_secret(value: object, info: ValidationInfo) -> SecretStr | None:
    if isinstance(value, SecretStr) or value is None:
        return value
    if isinstance(value, dict):
        return _from_elsewhere(value, info)
    if isinstance(value, list):
        raise _not_a_secret()
    if isinstance(value, Text) and value.vault:
        return _checked(_open_vault(str(value)), value, info)
    note(value, info, "plain-secret", "is a secret in plain text", "use !vault, {file: PATH} or {env: NAME}")
    return SecretStr(str(value))


def _not_a_secret() -> PydanticCustomError:
    return invalid("secret", "is not a secret", "write text, !vault, {file: PATH} or {env: NAME}")


def _from_elsewhere(value: dict[str, Any], info: ValidationInfo) -> SecretStr:
    match list(value.items()):
        case [("env", str() as name)] if name:
            return _checked(_from_environment(str(name)), value, info)
        case [("file", str() as name)] if name:
            return _checked(_from_file(str(name), value, info), value, info)
        case _:
            raise _not_a_secret()


def _checked(secret: SecretStr, value: object, info: ValidationInfo) -> SecretStr:
    if isinstance(secret, MissingSecret):
        note(value, info, "secret-missing", secret.reason, secret.remedy)
    return secret


def _from_environment(name: str) -> SecretStr:
    content = "" if "\0" in name or "=" in name else os.environ.get(name, "")
    if not content:
        return MissingSecret(f"the environment variable {shown(name)} is not set", "export it before the run")
    return SecretStr(content)


def _from_file(name: str, value: object, info: ValidationInfo) -> SecretStr:
    folder = info.context.folder if isinstance(info.context, Document) else Path()
    try:
        path = site_path(name, folder)
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            return MissingSecret(f"{shown(path)} is not a file", "write the secret into a file")
        with path.open("rb") as handle:
            content = handle.read(_MAX_SECRET_BYTES).decode().rstrip("\r\n")
    except (OSError, ValueError, RuntimeError) as error:
        reason = f"the secret file {shown(name)} cannot be read: {type(error).__name__}"
        return MissingSecret(reason, "write the secret into it, mode 0600")
    if mode & 0o077:
        note(value, info, "secret-mode", f"{shown(path)} can be read by others", f"chmod 600 {shown(path)}")
    return SecretStr(content)


def site_path(name: str, folder: Path) -> Path:
    """A path written in a site: `~` is the user's home, a relative one starts at the site's folder."""
    return folder / Path(name).expanduser()


def _open_vault(sealed: str) -> SecretStr:
    password_file = os.environ.get("ANSIBLE_VAULT_PASSWORD_FILE", "")
    if not password_file:
        return MissingSecret(
            "is sealed by ansible-vault", "set ANSIBLE_VAULT_PASSWORD_FILE to the file with its password"
        )
    from ansible.errors import AnsibleError  # type: ignore[import-untyped]  # noqa: PLC0415 - slow to import
    from ansible.parsing.vault import (  # type: ignore[import-untyped]  # noqa: PLC0415
        VaultLib,
        VaultSecret,
    )

    try:
        password = Path(password_file).expanduser().read_bytes().strip()
        opened = VaultLib([("default", VaultSecret(password))]).decrypt(sealed.strip().encode())
        return SecretStr(opened.decode().rstrip("\r\n"))
    except (AnsibleError, OSError, ValueError, RuntimeError) as error:
        reason = f"cannot be opened with the password in {shown(password_file)}: {type(error).__name__}"
        return MissingSecret(reason, "check the vault's password")


Secret = Annotated[
    SecretStr,
    BeforeValidator(_read_secret),
    WithJsonSchema(
        {
            "description": "Text, an ansible-vault string, {file: PATH} or {env: NAME}.",
            "anyOf": [
                {"type": "string"},
                {
                    "type": "object",
                    "properties": {"env": {"type": "string"}},
                    "required": ["env"],
                    "additionalProperties": False,
                },
                {
                    "type": "object",
                    "properties": {"file": {"type": "string"}},
                    "required": ["file"],
                    "additionalProperties": False,
                },
            ],
        }
    ),
]
