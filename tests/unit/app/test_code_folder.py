"""Folders of code, packed by their ignore files, and unpacked by the shell that a job runs."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from pai_install.app import code_folder
from pai_install.app.code_folder import packed_folder
from pai_install.jobs.code import FOLDER, MAX_ARCHIVE, UNPACK, CodeArchive
from pai_install.users.quotas import MAX_DATA
from tests.errors import raises


def write(root: Path, **files: str) -> Path:
    for name, content in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


def pack_folder(root: Path, max_mib: int = 16) -> CodeArchive:
    with packed_folder(root, max_mib) as packed:
        assert packed.small is not None
        return packed.small


def unpacked(code: CodeArchive, folder: Path, command: str = "find . -type f -o -type l | sort") -> str:
    """The output of a command that a job runs, with its code in a work folder."""
    parts, work = folder / "parts", folder / "work"
    parts.mkdir()
    for name, content in code.parts():
        (parts / name).write_bytes(content)
    script = UNPACK.replace(FOLDER, str(parts)) + command
    environment = {"PATH": os.environ["PATH"], "PAI_WORK_DIR": str(work)}
    done = subprocess.run(["sh", "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_ignore_files_count(tmp_path: Path) -> None:
    root = tmp_path / "code"
    files = {"train.py": "x", "data__big.bin": "x", "data__keep.txt": "x", "src__a.pyc": "x", "src__a.py": "x"}
    files |= {"src__sub__local.txt": "x", "local.txt": "x", "src__docs__a": "x", "docs__a": "x", ".git__config": "x"}
    write(root, **files)
    (root / ".gitignore").write_text("*.pyc\ndata/*\n!data/keep.txt\n")
    (root / "src" / ".gitignore").write_text("local.txt\n")
    (root / ".dockerignore").write_text("# Docker's begin at the folder\ndocs\n")
    (root / ".paiignore").write_text(".*ignore\n")
    found = unpacked(pack_folder(root), tmp_path)
    assert found.split() == ["./data/keep.txt", "./local.txt", "./src/a.py", "./src/docs/a", "./train.py"]


def test_the_same_files_have_the_same_digest(tmp_path: Path) -> None:
    one, two = write(tmp_path / "one", a="1", b__c="2"), write(tmp_path / "two", b__c="2", a="1")
    os.utime(two / "a", (1, 1))
    assert pack_folder(one).digest == pack_folder(two).digest
    (two / "a").chmod(0o755)
    assert pack_folder(one).digest != pack_folder(two).digest


def test_links_and_modes(tmp_path: Path) -> None:
    root = write(tmp_path / "code", run="#!/bin/sh\necho ran", lib__a="x")
    (root / "run").chmod(0o700)
    (root / "lib" / "b").symlink_to("a")
    assert unpacked(pack_folder(root), tmp_path, "./run; readlink lib/b") == "ran\na\n"


@pytest.mark.parametrize("target", ["/etc/passwd", "..", "../code/a", "a/../../b"])
def test_a_link_out_of_the_folder_is_refused(tmp_path: Path, target: str) -> None:
    root = write(tmp_path / "code", a="x")
    (root / "link").symlink_to(target)
    with raises("code-not-packed", "link"):
        pack_folder(root)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    root = write(tmp_path / "code", a="x")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(root / "door"))
        with raises("code-not-packed", "door"):
            pack_folder(root)
    (root / ".paiignore").write_text("door\n")
    assert pack_folder(root)


def test_folders_without_end_are_refused(tmp_path: Path) -> None:
    root = write(tmp_path / "code", a="x")
    here = os.open(root, os.O_RDONLY)
    for _ in range(1_500):
        os.mkdir("a-folder", dir_fd=here)
        below = os.open("a-folder", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    with raises("code-not-packed", str(root), "100"):
        pack_folder(root)
    (root / ".paiignore").write_text("a-folder\n")
    assert pack_folder(root)
    subprocess.run(["rm", "-r", root], check=True)


@pytest.mark.parametrize("name", [b"\xff\xfe", "a\x1b[2J\u202e".encode(), b"a\nb"])
def test_a_strange_name_is_shown_as_text(tmp_path: Path, name: bytes) -> None:
    root = write(tmp_path / "code", a="x")
    os.mkfifo(os.fsencode(root) + b"/" + name)
    with raises("code-not-packed") as caught:
        pack_folder(root)
    assert caught.value.message.isprintable()


def test_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write(tmp_path / "code", a="x")
    (root / "noise").write_bytes(os.urandom(MAX_ARCHIVE + 1))
    with raises("code-not-packed", "1 MiB"):
        pack_folder(root, 1)
    (root / "noise").unlink()
    monkeypatch.setattr(code_folder, "MAX_FILES", 0)
    with raises("code-not-packed"):
        pack_folder(root)
    with raises("code-not-packed"):
        pack_folder(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with raises("code-not-packed"):
        pack_folder(tmp_path / "empty")


def test_a_large_archive_has_several_parts(tmp_path: Path) -> None:
    root = write(tmp_path / "code", a="x")
    (root / "noise").write_bytes(os.urandom(900_000))
    code = pack_folder(root)
    maps = list(code.config_maps("job", "vision", {}))
    assert [len(one["binaryData"]) for one in maps] == [1] * 10
    assert max(len(next(iter(one["binaryData"].values()))) for one in maps) < MAX_DATA - 100
    assert unpacked(code, tmp_path, "wc -c < noise").strip() == "900000"


def test_an_image_without_tar_says_so(tmp_path: Path) -> None:
    script = UNPACK.replace(FOLDER, str(tmp_path)) + "echo started"
    environment = {"PATH": str(tmp_path), "PAI_WORK_DIR": str(tmp_path / "work")}
    shell = ["/bin/sh", "-c", script]
    done = subprocess.run(shell, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "needs tar" in done.stderr
    assert "started" not in done.stdout
