"""Archives that users send: what is read, and what is refused."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from pai_install.app.code_upload import read_archive
from pai_install.errors import PaiError
from pai_install.jobs.code import CodeArchive
from pai_install.jobs.code_archive import PackedCode
from tests.errors import raises
from tests.unit.app.test_code_folder import unpacked

Files = dict[str, bytes]
PLAIN: Files = {"train.py": b"print(1)\n", "lib/a.py": b"", "./b/../c.txt": b"c"}


def tarred(files: Files, mode: str = "w:gz", change: Callable[[tarfile.TarInfo], object] = lambda _: None) -> bytes:
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            change(entry)
            archive.addfile(entry, io.BytesIO(content) if entry.isreg() else None)
    return output.getvalue()


def zipped(files: Files, attributes: int = 0, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w") as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = attributes
            archive.writestr(entry, content, method)
    return output.getvalue()


@pytest.mark.parametrize("made", [tarred(PLAIN), tarred(PLAIN, "w"), zipped(PLAIN)], ids=["tar.gz", "tar", "zip"])
def test_kinds_of_archives(tmp_path: Path, made: bytes) -> None:
    code = small(read_archive(made))
    assert unpacked(code, tmp_path).split() == ["./c.txt", "./lib/a.py", "./train.py"]
    assert code.digest == read_archive(tarred(PLAIN)).digest
    assert read_archive(code.content).digest == code.digest


def small(packed: PackedCode) -> CodeArchive:
    assert packed.small is not None
    return packed.small


def linked(target: str) -> bytes:
    def change(entry: tarfile.TarInfo) -> None:
        entry.type, entry.linkname, entry.size = tarfile.SYMTYPE, target, 0

    return tarred({"d/link": b""}, change=change)


def of_type(kind: bytes) -> bytes:
    def change(entry: tarfile.TarInfo) -> None:
        entry.type, entry.linkname, entry.size = kind, "x", 0

    return tarred({"entry": b""}, change=change)


def links(**targets: str) -> bytes:
    """Links with `/` in their names as `__`."""

    def change(entry: tarfile.TarInfo) -> None:
        entry.type, entry.linkname, entry.size = tarfile.SYMTYPE, targets[entry.name.replace("/", "__")], 0

    return tarred({name.replace("__", "/"): b"" for name in targets}, change=change)


HOSTILE = {
    "link-through-a-link": links(sub__up="..", out="sub/up/.."),
    "link-through-links": links(a="b", b="c/d", c__d="..", out="a/../.."),
    "link-through-a-later-link": links(out="z/..", z="sub/.."),
    "long-link": links(long="a/" * 100_000 + "b"),
    "above": tarred({"../evil": b"x"}),
    "absolute": tarred({"/etc/evil": b"x"}),
    "hidden-above": tarred({"a/../../evil": b"x"}),
    "zip-above": zipped({"../evil": b"x"}),
    "zip-absolute": zipped({"/evil": b"x"}),
    "backslash": zipped({"a\\..\\..\\evil": b"x"}),
    "control": tarred({"a\x1b[2Jb": b"x"}),
    "link-out": linked("../../etc/passwd"),
    "link-absolute": linked("/etc/passwd"),
    "hard-link": of_type(tarfile.LNKTYPE),
    "device": of_type(tarfile.CHRTYPE),
    "pipe": of_type(tarfile.FIFOTYPE),
    "zip-link": zipped({"link": b"/etc/passwd"}, 0o120777 << 16),
    "file-and-folder": tarred({"a": b"x", "a/b": b"x"}),
    "bomb": gzip.compress(bytes(100 * 1024 * 1024)),
    "zip-bomb": zipped({"zeros": bytes(40 * 1024 * 1024)}),
    # Python unpacks a block of them as a whole
    "zip-bzip2": zipped(PLAIN, method=zipfile.ZIP_BZIP2),
    "zip-lzma": zipped(PLAIN, method=zipfile.ZIP_LZMA),
    "many": tarred({f"f{number}": b"" for number in range(10_001)}),
    "noise": tarred({"noise": os.urandom(17_000_000)}),
    "empty": tarred({}),
    "text": b"no archive",
    "nothing": b"",
    "broken-gzip": b"\x1f\x8b" + b"x" * 100,
    "broken-zip": b"PK\x03\x04" + b"x" * 100,
    "half": tarred(PLAIN)[:60],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_other_archives_are_refused(name: str) -> None:
    with raises("code-not-packed"):
        read_archive(HOSTILE[name])


def test_a_small_zip_takes_no_memory() -> None:
    """200 MiB of zeros in 200 bytes."""
    bomb = zipped({"zeros": bytes(200 * 1024 * 1024)}, method=zipfile.ZIP_BZIP2)
    assert len(bomb) < 1000
    tracemalloc.start()
    with raises("code-not-packed"):
        read_archive(bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 * 1024 * 1024


def test_links_below_the_folder_stay(tmp_path: Path) -> None:
    code = small(read_archive(linked("../a")))
    assert unpacked(code, tmp_path, "readlink d/link") == "../a\n"


def test_a_long_chain_of_links_costs_little(tmp_path: Path) -> None:
    """The system ends it, and nothing is written through it."""
    begin = time.process_time()
    packed = read_archive(links(**{f"l{number}": f"l{number + 1}" for number in range(9_000)}))
    assert time.process_time() - begin < 4
    assert unpacked(small(packed), tmp_path, "cat l0 2>/dev/null || echo no").split() == ["no"]


@pytest.mark.parametrize("seed", range(40))
def test_no_bytes_give_another_error(seed: int) -> None:
    good = bytearray(zipped(PLAIN) if seed % 2 else tarred(PLAIN, "w"))
    for number in range(8):
        good[(seed * 7919 + number * 104729) % len(good)] ^= 1 << (seed + number) % 8
    with suppress(PaiError):
        assert read_archive(bytes(good)).size
