"""Backups of strangers: the members that a restore takes, and those that it refuses."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from pai_install.errors import PaiError
from pai_install.run.backup import bring_back, read_backup

HOST_KEY = "10.0.0.1 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA=="


def backup(folder: Path, members: dict[str, bytes]) -> Path:
    """A file with these members, and a manifest that agrees with them."""
    members = {"machine.tar": b"", **members}
    manifest = {
        "schema_version": 1,
        "cluster": "c",
        "leader": "master",
        "created": "2027-01-31T02:03:04Z",
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in members.items()},
    }
    path = folder / "backup.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, content in {"manifest.json": json.dumps(manifest).encode(), **members}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


@pytest.mark.parametrize(
    "name",
    [
        "state/kubeconfig", "state/lab_ssh_key", "site/.envrc", "site/Makefile", "site/../.envrc", "site//layout.yaml",
        "state/../site/layout.yaml", "/etc/passwd", "layout.yaml", "state/lock", "site/secrets.yaml",
    ],
)  # fmt: skip
def test_a_member_that_no_backup_has_is_refused(tmp_path: Path, name: str) -> None:
    """A kubeconfig with an exec plugin would run its program at the next kubectl."""
    with pytest.raises(PaiError) as refused:
        read_backup(backup(tmp_path, {name: b"x"}))
    assert refused.value.code == "backup-invalid"


@pytest.mark.parametrize("line", ["@cert-authority * ssh-rsa AAAA", "* ssh-rsa", "ProxyCommand touch /tmp/x", "\x00"])
def test_a_line_that_is_no_host_key_is_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(PaiError) as refused:
        read_backup(backup(tmp_path, {"state/known_hosts": f"{HOST_KEY}\n{line}\n".encode()}))
    assert refused.value.code == "backup-invalid"


def test_a_member_above_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pai_install.run.backup._LARGEST", 1000)
    with pytest.raises(PaiError):
        read_backup(backup(tmp_path, {"state/known_hosts": b"#" * 1001}))


def test_the_members_of_a_backup_are_restored(tmp_path: Path) -> None:
    file = backup(tmp_path, {"site/layout.yaml": b"a: b\n", "state/known_hosts": f"# mine\n{HOST_KEY}\n".encode()})
    written, others = bring_back(file, read_backup(file), tmp_path / "site")
    assert [Path(path).name for path in written] == ["layout.yaml", "known_hosts"]
    assert others == ()
