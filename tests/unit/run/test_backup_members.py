"""Backups of strangers: the members that a restore takes, and those that it refuses."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import tracemalloc
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


def archive(folder: Path, *entries: tuple[tarfile.TarInfo, bytes], files: dict[str, str]) -> Path:
    """A file with these entries, and a manifest of these members."""
    manifest = {"schema_version": 1, "cluster": "c", "leader": "master", "created": "x", "files": files}
    path = folder / "hostile.tar.gz"
    with tarfile.open(path, "w:gz") as made:
        text = json.dumps(manifest).encode()
        head = tarfile.TarInfo("manifest.json")
        head.size = len(text)
        made.addfile(head, io.BytesIO(text))
        for entry, content in entries:
            entry.size = len(content)
            made.addfile(entry, io.BytesIO(content))
    return path


def of_kind(kind: bytes, link: str = "", name: str = "site/layout.yaml") -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, link
    return entry


ENTRIES = {
    "absolute link": of_kind(tarfile.SYMTYPE, "/etc/shadow"),
    "link upwards": of_kind(tarfile.SYMTYPE, "../../etc/shadow"),
    "hard link": of_kind(tarfile.LNKTYPE, "/etc/shadow"),
    "character device": of_kind(tarfile.CHRTYPE),
    "block device": of_kind(tarfile.BLKTYPE),
    "pipe": of_kind(tarfile.FIFOTYPE),
    "folder": of_kind(tarfile.DIRTYPE),
}


@pytest.mark.parametrize("kind", ENTRIES)
def test_a_member_that_is_no_file_is_refused(tmp_path: Path, kind: str) -> None:
    digest = hashlib.sha256(b"").hexdigest()
    file = archive(tmp_path, (ENTRIES[kind], b""), files={"site/layout.yaml": digest})
    with pytest.raises(PaiError) as refused:
        read_backup(file)
    assert refused.value.code == "backup-invalid"


def test_members_beside_the_manifest_are_never_written(tmp_path: Path) -> None:
    """tarfile would put them anywhere; a restore takes only what the manifest names."""
    beside = [tarfile.TarInfo(name) for name in ("../.envrc", "/tmp/pai-evil", "site/Makefile", "state/kubeconfig")]
    layout = b"a: b\n"
    files = {"site/layout.yaml": hashlib.sha256(layout).hexdigest()}
    entries = [(of_kind(tarfile.REGTYPE), layout), *((entry, b"x") for entry in beside)]
    file = archive(tmp_path, *entries, files=files)
    site = tmp_path / "deep/site"
    written, _ = bring_back(file, read_backup(file), site)
    assert [Path(path).name for path in written] == ["layout.yaml"]
    there = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert there == {"hostile.tar.gz", "deep/site/layout.yaml", "deep/site/.pai/.gitignore"}
    assert not Path("/tmp/pai-evil").exists()


def test_the_second_of_two_members_with_a_name_does_not_pass_for_the_first(tmp_path: Path) -> None:
    good, evil = b"a: b\n", b"evil: yes\n"
    entries = [(of_kind(tarfile.REGTYPE), content) for content in (good, evil)]
    files = {"site/layout.yaml": hashlib.sha256(good).hexdigest()}
    with pytest.raises(PaiError):
        read_backup(archive(tmp_path, *entries, files=files))


CONTENTS = {
    "site/config.yaml": (b"user: pai\n\x1b]0;evil\x07", b"\xff\xfe", b"a\0b"),
    "state/registry.json": (b"{}", b"[]", b'{"salt": "x"}', b"[" * 100_000, b"\xff"),
    "state/storages.json": (b'{"a": {"exec": "touch /tmp/x"}}', b"[1]", b"[" * 100_000),
    "state/known_hosts": (b"\xff", b"* ssh-rsa AAAA\n@cert-authority * ssh-rsa AAAA\n"),
}


@pytest.mark.parametrize(("name", "content"), [(name, it) for name, all_of in CONTENTS.items() for it in all_of])
def test_a_content_that_no_backup_has_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    with pytest.raises(PaiError) as refused:
        read_backup(backup(tmp_path, {name: content}))
    assert refused.value.code == "backup-invalid"


def test_a_file_that_unpacks_to_gigabytes_is_refused_without_unpacking_it(tmp_path: Path) -> None:
    """A member of zeros: its digest would be right, and its size is above the limit."""
    zeros, size = hashlib.sha256(), 64 << 20
    for _ in range(64):
        zeros.update(bytes(1 << 20))
    path = tmp_path / "bomb.tar.gz"
    files = {"site/config.yaml": zeros.hexdigest()}
    manifest = json.dumps({"schema_version": 1, "cluster": "c", "leader": "m", "created": "x", "files": files}).encode()
    with tarfile.open(path, "w:gz") as made:
        for name, content in (("manifest.json", manifest), ("site/config.yaml", bytes(size))):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            made.addfile(entry, io.BytesIO(content))
    tracemalloc.start()
    try:
        with pytest.raises(PaiError) as refused:
            read_backup(path)
        assert tracemalloc.get_traced_memory()[1] < size
    finally:
        tracemalloc.stop()
    assert refused.value.code == "backup-invalid"
