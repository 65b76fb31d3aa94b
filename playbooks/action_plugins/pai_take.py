"""Action pai_take: copies a root-only file to the controller host, where only its owner can read it.

It copies in parts, so that neither side holds the whole file in memory. The result has none of its content.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import shlex
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

PART = 6 << 20


def _require(holds: object, otherwise: str) -> None:
    if not holds:
        raise AnsibleActionFail(otherwise)


class ActionModule(ActionBase):
    """Arguments: src (file of the machine), dest (path on the controller host), sha256 (of the file)."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Gives only how much came."""
        super().run(tmp, task_vars)
        words = self._task.args
        dest, wanted = str(words["dest"]), str(words["sha256"])
        os.makedirs(os.path.dirname(dest), mode=0o700, exist_ok=True)
        descriptor = os.open(f"{dest}.partial", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as handle:
                size, found = self._copy(str(words["src"]), handle)
            # Parts that were read while the file changed would not fit together.
            _require(found == wanted, f"{words['src']} came with another content than the machine said")
            os.replace(f"{dest}.partial", dest)
        except BaseException:
            os.unlink(f"{dest}.partial")
            raise
        return {"changed": False, "bytes": size}

    def _copy(self, src: str, handle: Any) -> tuple[int, str]:
        """Copies part after part. Returns the number of bytes and their sha256."""
        content, size, number = hashlib.sha256(), 0, 0
        while True:
            part = self._part(src, number)
            content.update(part)
            handle.write(part)
            size, number = size + len(part), number + 1
            if len(part) < PART:
                return size, content.hexdigest()

    def _part(self, src: str, number: int) -> bytes:
        file = shlex.quote(src)
        # base64, because the connection of Ansible carries text and would change other bytes.
        command = f"test -r {file} && dd if={file} bs={PART} skip={number} count=1 status=none | base64 --wrap=0"
        found = self._low_level_execute_command(command)
        _require(found["rc"] == 0, f"{src} cannot be read: {str(found['stderr']).strip()[-200:]}")
        try:
            return base64.b64decode(found["stdout"].strip(), validate=True)
        except (binascii.Error, ValueError) as error:
            raise AnsibleActionFail(f"{src} cannot be read: {error}") from error
