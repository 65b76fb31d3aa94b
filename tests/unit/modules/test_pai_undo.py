"""What records list is taken back: files of ours go, files of the admin's are as they were."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from tests.ansible_path import module_util

from .conftest import Run


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """State of pai-install below tmp_path, with notes begun; gives the folder of the machine's own files."""
    merging, origins = module_util("pai_merging"), module_util("pai_origins")
    monkeypatch.setattr(merging, "MERGED_DIR", str(tmp_path / "state" / "merged"))
    monkeypatch.setattr(origins, "ORIGINS", str(tmp_path / "state" / "origins.json"))
    monkeypatch.setattr(origins, "STATE_DIR", str(tmp_path / "state"))
    origins.begin({})
    (tmp_path / "etc").mkdir()
    return tmp_path / "etc"


@pytest.fixture
def undo() -> Callable[..., Any]:
    """Undoes expectations with what the notes say; gives what it did."""

    def run(expectations: list[dict[str, Any]], *, check: bool = False) -> Any:
        found = module_util("pai_undo").Undo((module_util("pai_origins").origins() or {}).get("files", {}), check=check)
        found.items(expectations)
        found.copies([one["path"] for one in expectations if "path" in one])
        return found

    return run


@pytest.fixture
def files(run_module: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """pai_files; gives its expectations."""
    monkeypatch.setattr(module_util("pai_file_set"), "FILES_DIR", str(tmp_path / "state" / "files"))

    def run(*items: dict[str, Any], **more: Any) -> Any:
        return run_module("pai_files", files=list(items), **more)["managed"]

    return run


def test_a_file_of_ours_goes_with_its_folder(places: Path, files: Run, undo: Callable[..., Any]) -> None:
    path = places / "pai" / "deep" / "ours.conf"
    expected = files({"path": str(path), "content": "ours\n"})
    assert undo(expected).actions == [f"removed {path}"]
    assert not (places / "pai").exists()


@pytest.mark.parametrize("folder", ["/etc/apt/preferences.d", "/etc/modprobe.d", "/etc/sysctl.d", "/usr/local/lib"])
def test_a_folder_that_machines_have_without_us_stays(monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    """Those of packages that ship nothing in them: empty once our file is gone."""
    removed: list[str] = []
    monkeypatch.setattr("os.rmdir", removed.append)
    module_util("pai_undo").Undo({}, check=False).tidy(f"{folder}/pai-install.conf")
    assert removed == []


def test_a_file_that_was_there_comes_back_and_no_copy_stays(places: Path, files: Run, undo: Callable[..., Any]) -> None:
    path = places / "config.toml"
    path.write_text("the admin's\n")
    files({"path": str(path), "content": "first\n", "backup": True})
    expected = files({"path": str(path), "content": "second\n", "backup": True})
    undo(expected)
    assert path.read_text() == "the admin's\n"
    assert [one.name for one in places.iterdir() if one.read_text() == "the admin's\n"] == ["config.toml"]


def test_undone_twice_does_nothing_the_second_time(places: Path, files: Run, undo: Callable[..., Any]) -> None:
    path, gone = places / "kept", places / "gone"
    path.write_text("mine\n")
    expected = files(
        {"path": str(path), "content": "ours\n", "backup": True},
        {"path": str(gone), "content": "ours\n"},
        {"path": str(places / "hosts"), "block": "10.0.0.1 a\n"},
    )
    assert undo(expected).actions
    assert undo(expected).actions == []
    assert path.read_text() == "mine\n"


def test_check_mode_says_the_same_and_does_nothing(places: Path, files: Run, undo: Callable[..., Any]) -> None:
    path, hosts = places / "ours.conf", places / "hosts"
    hosts.write_text("127.0.0.1 localhost\n")
    expected = files({"path": str(path), "content": "ours\n"}, {"path": str(hosts), "block": "10.0.0.1 a\n"})
    said = undo(expected, check=True).actions
    assert path.exists()
    assert "10.0.0.1" in hosts.read_text()
    assert undo(expected).actions == said


def test_lines_that_were_put_out_of_use_are_back(
    places: Path, files: Run, undo: Callable[..., Any], snapshot: SnapshotAssertion
) -> None:
    path = places / "chrony.conf"
    path.write_text("pool 2.debian.pool.ntp.org iburst\nkeyfile /etc/chrony/keys\n")
    rule = {"regexp": r"^(pool \S+ .*)$", "replacement": r"# not used in this cluster (pai-install): \1"}
    expected = files({"path": str(path), "replace": [rule], "backup": True})
    assert "# not used" in path.read_text()
    undo(expected)
    assert path.read_text() == snapshot
    assert [one.name for one in places.iterdir()] == ["chrony.conf"]


def test_settings_of_the_admin_stay_where_ours_are_taken_out(
    places: Path, files: Run, undo: Callable[..., Any]
) -> None:
    path = places / "daemon.json"
    path.write_text(json.dumps({"debug": True, "registry-mirrors": ["https://mine"]}))
    patch = {"registry-mirrors": ["https://ours"], "live-restore": True}
    expected = files({"path": str(path), "merge_json": patch, "live": True}, owner="one")
    path.write_text(json.dumps({**json.loads(path.read_text()), "later": 1}))
    undo(expected)
    assert json.loads(path.read_text()) == {"debug": True, "registry-mirrors": ["https://mine"], "later": 1}


def test_a_merged_file_that_was_not_there_goes(places: Path, files: Run, undo: Callable[..., Any]) -> None:
    path = places / "daemon.json"
    expected = files({"path": str(path), "merge_json": {"a": 1}, "live": True}, owner="one")
    undo(expected)
    assert not path.exists()


def test_content_of_people_is_nobodys_to_undo(places: Path, undo: Callable[..., Any]) -> None:
    folder = places / "data"
    folder.mkdir()
    undo([{"kind": "present", "path": str(folder), "content": True}, {"kind": "present", "path": str(folder)}])
    assert folder.is_dir()


def test_what_a_module_of_ansibles_made_goes_where_the_record_says_so(places: Path, undo: Callable[..., Any]) -> None:
    path = places / "docker.sources"
    path.touch()
    undo([{"kind": "present", "path": str(path), "ours": True}])
    assert not path.exists()


@given(
    text=st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=200),
    lines=st.lists(st.sampled_from(["a", "b c"])),
)
def test_a_block_leaves_a_text_as_it_was(text: str, lines: list[str]) -> None:
    """But for the end of its last line, which every text gets."""
    undo = module_util("pai_undo")
    managed = module_util("pai_managed")
    begin, end = managed.markers("pai-install")
    if begin in text:
        return
    body = "".join(f"{line}\n" for line in lines)
    whole = (text if not text or text.endswith("\n") else text + "\n") + f"{begin}\n{body}{end}\n"
    assert undo.without_block(whole, "pai-install").rstrip("\n") == text.rstrip("\n")


@pytest.mark.parametrize("folder", ["/etc/apt", "/etc/apt/preferences.d", "/etc/apt/apt.conf.d", "/etc/apt/keyrings"])
def test_folders_that_a_package_of_the_system_brings_stay_when_they_are_empty(folder: str) -> None:
    assert folder in module_util("pai_undo").STANDARD
