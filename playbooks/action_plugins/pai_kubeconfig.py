"""Action pai_kubeconfig: writes the administrator's kubeconfig on the controller host, from that of a control plane.

A kubeconfig may name programs to run and files to read. So the machine's file never comes: the certificates and the
key in it do, once they are seen to be that and no more, and the file here is of our own making.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import tempfile
from collections.abc import Mapping
from typing import Any

import yaml
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

SOURCE = "/etc/kubernetes/admin.conf"
LONGEST = 1 << 16
DEEPEST = 10

_LINES = r"\n(?:[A-Za-z0-9+/=]+\n)+"
_CERTIFICATE = rf"-----BEGIN CERTIFICATE-----{_LINES}-----END CERTIFICATE-----\n?"
_PEM = {
    "certificate-authority-data": re.compile(rf"(?:{_CERTIFICATE})+"),
    "client-certificate-data": re.compile(rf"(?:{_CERTIFICATE})+"),
    "client-key-data": re.compile(rf"-----BEGIN ((?:RSA |EC )?PRIVATE KEY)-----{_LINES}-----END \1-----\n?"),
}
_CLUSTER = frozenset({"server", "certificate-authority-data"})
_USER = frozenset({"client-certificate-data", "client-key-data"})


class KubeconfigError(Exception):
    """A machine's kubeconfig does not have the form that kubeadm writes."""


def kubeconfig(text: bytes, server: str) -> str:
    """A kubeconfig of ours that leads to `server`, with the certificates and the key of another one.

    Raises KubeconfigError where that holds anything else that a program would heed.
    """
    document = _parsed(text)
    cluster = _only(document, "clusters", "cluster", _CLUSTER)
    user = _only(document, "users", "user", _USER)
    authority = _pem(cluster, "certificate-authority-data")
    own_config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "kubernetes", "cluster": {"server": server, "certificate-authority-data": authority}},
        ],
        "users": [{"name": "kubernetes-admin", "user": {name: _pem(user, name) for name in sorted(_USER)}}],
        "contexts": [
            {
                "name": "kubernetes-admin@kubernetes",
                "context": {"cluster": "kubernetes", "user": "kubernetes-admin"},
            },
        ],
        "current-context": "kubernetes-admin@kubernetes",
    }
    return yaml.safe_dump(own_config, sort_keys=False)


def _parsed(text: bytes) -> Any:
    if len(text) > LONGEST:
        raise KubeconfigError(f"it is longer than {LONGEST} bytes")
    try:
        _check_simple(text)
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise KubeconfigError("it is no YAML") from error


def _check_simple(text: bytes) -> None:
    """Rejects aliases and deep nesting, which make short documents slow to parse. kubeadm writes neither."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST or isinstance(event, yaml.AliasEvent):
            raise KubeconfigError("it is deeper than a kubeconfig, or has aliases")


def _only(document: Any, plural: str, name: str, keys: frozenset[str]) -> Mapping[str, Any]:
    """The one entry of a list, when it has exactly those keys."""
    entries = document.get(plural) if isinstance(document, dict) else None
    entry = entries[0] if isinstance(entries, list) and len(entries) == 1 else None
    found = entry.get(name) if isinstance(entry, dict) else None
    if not isinstance(found, dict):
        raise KubeconfigError(f"it does not have exactly one {name}")
    if set(found) != keys:
        raise KubeconfigError(f"its {name} does not have exactly {' and '.join(sorted(keys))}")
    return found


def _pem(values: Mapping[str, Any], name: str) -> str:
    try:
        text = base64.b64decode(values[name], validate=True).decode("ascii")
    except (TypeError, ValueError, binascii.Error):
        text = ""
    if not _PEM[name].fullmatch(text):
        raise KubeconfigError(f"its {name} is not PEM")
    return base64.b64encode(text.encode()).decode()


def write_private(path: str, content: str) -> bool:
    """Replaces a file of the controller host (0600) atomically. Returns whether it differed or was readable
    by others.
    """
    wanted = content.encode()
    try:
        with open(path, "rb") as handle:
            # One byte more shows a longer file.
            if handle.read(len(wanted) + 1) == wanted and os.fstat(handle.fileno()).st_mode & 0o777 == 0o600:
                return False
    except FileNotFoundError:
        pass
    descriptor, temporary = tempfile.mkstemp(prefix=".kubeconfig.", dir=os.path.dirname(path))  # 0600
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(wanted)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    return True


class ActionModule(ActionBase):
    """Arguments: dest (path on the controller host), server (URL that the file is to lead to)."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Gives only whether the file changed: nothing of its content."""
        super().run(tmp, task_vars)
        found = self._execute_module("ansible.builtin.slurp", {"src": SOURCE}, task_vars=task_vars)
        if found.get("failed"):
            raise AnsibleActionFail(f"{SOURCE} cannot be read")
        try:
            # The machine may be hostile, so the answer is cut before anything reads it.
            text = base64.b64decode(str(found.get("content"))[: 2 * LONGEST])
            content = kubeconfig(text, str(self._task.args["server"]))
        except (KubeconfigError, ValueError) as error:
            raise AnsibleActionFail(
                f"{SOURCE} is not a file of kubeadm: {error}. Nothing of it reached the controller host. "
                "A kubeconfig can run programs where it is used, so look who changed it before you do anything else. "
                "`kubeadm init phase kubeconfig admin` makes a new one once the file is moved away"
            ) from error
        return {"changed": write_private(str(self._task.args["dest"]), content)}
