"""apt of this box, asked about sources in folders: what it refuses ends an update, and nothing of the box changes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.ansible_path import module_util

pytestmark = pytest.mark.skipif(not shutil.which("apt-get"), reason="the box has no apt")


@pytest.fixture
def apt() -> Any:
    return module_util("pai_probe_apt")


def sources(folder: Path, *lines: str) -> str:
    """Configuration that makes these lines all that apt knows."""
    parts = folder / "parts"
    parts.mkdir()
    (parts / "a.list").write_text("".join(f"{line}\n" for line in lines))
    return f'Dir::Etc::sourcelist "/dev/null";\nDir::Etc::sourceparts "{parts}";\n'


def repository(folder: Path) -> Path:
    """A folder that apt takes for a repository, without a signature."""
    made = folder / "repository"
    made.mkdir()
    (made / "Release").write_text("Suite: x\nDate: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n")
    return made


def test_sources_that_are_well(apt: Any, tmp_path: Path) -> None:
    further = sources(tmp_path, f"deb [trusted=yes] file:{repository(tmp_path)} ./")
    assert apt.refused_sources(further, str(tmp_path)) == []


def test_a_source_that_ended(apt: Any, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    well = f"deb [trusted=yes] file:{repository(tmp_path)} ./"
    [said] = apt.refused_sources(sources(tmp_path, well, f"deb file:{tmp_path}/gone ./"), str(tmp_path))
    assert "gone" in said
    assert said == snapshot


def test_a_source_without_a_signature(apt: Any, tmp_path: Path) -> None:
    [said] = apt.refused_sources(sources(tmp_path, f"deb file:{repository(tmp_path)} ./"), str(tmp_path))
    assert "is not signed" in said


def test_two_keys_for_one_source(apt: Any, tmp_path: Path) -> None:
    made = repository(tmp_path)
    lines = [f"deb [signed-by=/usr/share/keyrings/{key}.gpg] file:{made} ./" for key in ("a", "b")]
    assert "Signed-By" in apt.refused_sources(sources(tmp_path, *lines), str(tmp_path))[0]


def test_a_server_that_does_not_answer_is_no_refusal(apt: Any, tmp_path: Path) -> None:
    assert apt.refused_sources(sources(tmp_path, "deb http://127.0.0.1:1/debian x main"), str(tmp_path)) == []


def test_an_apt_that_gives_no_answer(
    apt: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    for status, words in ((127, "cannot be run"), (124, "longer than")):
        monkeypatch.setattr(apt, "command", lambda *_args, status=status, **_more: (status, ""))
        with pytest.raises(OSError, match=words):
            apt.refused_sources("", str(tmp_path))
    monkeypatch.setattr(apt, "command", lambda *_args, **_more: (100, ""))
    assert apt.refused_sources("", str(tmp_path)) == snapshot


def test_logins_stay_away(apt: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    said = "W: x\nE: The repository 'https://me:word@host/x Release' does not have a Release file.\n"
    monkeypatch.setattr(apt, "command", lambda *_args, **_more: (100, said))
    [found] = apt.refused_sources("", str(tmp_path))
    assert "word" not in found
