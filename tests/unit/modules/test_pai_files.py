"""Files: written whole, in blocks, by replacement, merged; checked first; never half done."""

from __future__ import annotations

import difflib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.ansible_path import module_util

from .conftest import ModuleFailedError, Run


@pytest.fixture
def files(run_module: Run, merging: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs pai_files with its memory below the test's folder."""

    monkeypatch.setattr(merging, "MERGED_DIR", str(tmp_path / "merged"))
    monkeypatch.setattr(module_util("pai_file_set"), "FILES_DIR", str(tmp_path / "files"))

    def run(*items: dict[str, Any], check: bool = False, owner: str = "") -> dict[str, Any]:
        return run_module("pai_files", files=list(items), check=check, owner=owner)

    return run


def test_content_is_written_once(files: Run, tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.conf"
    item = {"path": str(path), "content": "a = 1\n", "mode": "0640"}
    first = files(item)
    assert first["changed"]
    assert first["changed_paths"] == [str(path)]
    assert path.read_text() == "a = 1\n"
    assert path.stat().st_mode & 0o777 == 0o640
    second = files(item)
    assert not second["changed"]
    assert second["managed"] == first["managed"]


def test_block_for_a_file_of_another_program_waits_for_that_program(files: Run, tmp_path: Path) -> None:
    path = tmp_path / "hosts.debian.tmpl"
    item = {"path": str(path), "block": "10.0.0.1 master", "if_there": True}
    result = files(item)
    assert (result["changed"], result["managed"], path.exists()) == (False, [], False)
    path.write_text("## template:jinja\n127.0.0.1 localhost\n")
    result = files(item)
    assert result["changed"]
    assert [entry["kind"] for entry in result["managed"]] == ["block"]
    lines = path.read_text().splitlines()
    assert (lines[0], lines[-2]) == ("## template:jinja", "10.0.0.1 master")


def test_check_mode_shows_and_leaves(files: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.conf"
    path.write_text("a = 1\n")
    result = files({"path": str(path), "content": "a = 2\n"}, check=True)
    assert result["changed"]
    assert result["diff"][0]["before"] == "a = 1\n"
    assert result["diff"][0]["after"] == "a = 2\n"
    assert path.read_text() == "a = 1\n"


def test_secret_content_is_not_in_the_diff(files: Run, tmp_path: Path) -> None:
    result = files({"path": str(tmp_path / "s"), "content": "planted", "secret": True})
    assert "planted" not in json.dumps(result["diff"])


def test_program_that_a_text_replaces_is_not_in_the_diff(files: Run, tmp_path: Path) -> None:
    path = tmp_path / "etcdctl"
    path.write_bytes(b"\x7fELF\0\xff\xfe" * 100)
    result = files({"path": str(path), "content": "#!/bin/sh\n", "backup": True})
    assert len(result["diff"][0]["before"]) < 100
    assert Path(result["backups"][str(path)]).read_bytes() == b"\x7fELF\0\xff\xfe" * 100


def test_checker_that_refuses_leaves_the_old_file(files: Run, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    path = tmp_path / "a.json"
    path.write_text("{}")
    with pytest.raises(ModuleFailedError) as stop:
        files({"path": str(path), "content": "{broken", "validate": "python3 -m json.tool %s"})
    assert stop.value.result["msg"] == snapshot
    assert path.read_text() == "{}"
    assert list(tmp_path.glob(".pai-*")) == []


def test_checker_that_is_not_there_yet_is_skipped(files: Run, tmp_path: Path) -> None:
    path = tmp_path / "a"
    files({"path": str(path), "content": "x", "validate": "pai-no-such-program %s"})
    assert path.read_text() == "x"


def test_block_in_a_file_of_somebody_else(files: Run, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    path = tmp_path / "hosts"
    path.write_text("127.0.0.1 localhost")
    item = {"path": str(path), "block": "10.0.0.1 a\n"}
    files(item)
    assert path.read_text() == snapshot
    assert not files(item)["changed"]
    files({**item, "block": "10.0.0.2 b\n"})
    assert path.read_text() == snapshot


def test_replacement_happens_once_and_needs_the_file(files: Run, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    path = tmp_path / "chrony.conf"
    rule = {"regexp": r"^(pool .*)$", "replacement": r"# not used: \1"}
    assert not files({"path": str(path), "replace": [rule]})["changed"]
    assert not path.exists()
    path.write_text("pool x iburst\nmakestep 1 3\n")
    assert files({"path": str(path), "replace": [rule]})["changed"]
    assert path.read_text() == snapshot
    assert not files({"path": str(path), "replace": [rule]})["changed"]


def test_backup_is_kept_and_named(files: Run, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    result = files({"path": str(path), "content": "new", "backup": True})
    assert Path(result["backups"][str(path)]).read_text() == "old"


def test_new_file_has_an_empty_backup_so_that_it_can_be_rolled_back(files: Run, tmp_path: Path) -> None:
    path = tmp_path / "a"
    assert files({"path": str(path), "content": "new", "backup": True})["backups"] == {str(path): ""}


def test_paths_are_all_files_but_live_ones(files: Run, tmp_path: Path) -> None:
    """Also those that did not change, or must not be there: the service may not have read them yet."""
    written, gone, live, lines = (str(tmp_path / name) for name in ("a", "b", "c", "d"))
    items = [
        {"path": written, "content": "x"},
        {"path": gone, "state": "absent"},
        {"path": live, "content": "x", "live": True},
        {"path": lines, "replace": [{"regexp": "x", "replacement": "y"}]},
    ]
    assert files(*items)["paths"] == [written, gone, lines]
    assert files(*items)["paths"] == [written, gone, lines]


def test_absent(files: Run, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("x")
    assert files({"path": str(path), "state": "absent"})["changed"]
    assert not path.exists()
    assert not files({"path": str(path), "state": "absent"})["changed"]


def test_bytes_that_are_no_utf8_survive(files: Run, tmp_path: Path) -> None:
    path = tmp_path / "latin"
    path.write_bytes(b"name = M\xfcller\n")
    files({"path": str(path), "block": "x\n"})
    assert path.read_bytes().startswith(b"name = M\xfcller\n")


def test_json_is_merged_and_the_admins_keys_stay(files: Run, tmp_path: Path) -> None:
    path = tmp_path / "daemon.json"
    path.write_text(
        '{"bip": "10.9.0.1/24", "runtimes": {"kata": {"path": "/kata"}}, "registry-mirrors": ["https://own"]}'
    )
    patch = {"runtimes": {"nvidia": {"path": "/n"}}, "registry-mirrors": ["https://a"], "live-restore": True}
    files({"path": str(path), "merge_json": patch})
    assert json.loads(path.read_text()) == {
        "bip": "10.9.0.1/24",
        "runtimes": {"kata": {"path": "/kata"}, "nvidia": {"path": "/n"}},
        "registry-mirrors": ["https://own", "https://a"],
        "live-restore": True,
    }
    assert not files({"path": str(path), "merge_json": patch})["changed"]


def test_what_is_no_longer_wanted_is_taken_out_again(files: Run, tmp_path: Path) -> None:
    path = tmp_path / "daemon.json"
    path.write_text('{"registry-mirrors": ["https://own"]}')
    files({"path": str(path), "merge_json": {"registry-mirrors": ["https://old"], "debug": True}})
    files({"path": str(path), "merge_json": {"registry-mirrors": ["https://new"]}})
    assert json.loads(path.read_text()) == {"registry-mirrors": ["https://own", "https://new"]}


def test_json_that_already_holds_everything_keeps_its_format(files: Run, tmp_path: Path) -> None:
    path = tmp_path / "daemon.json"
    path.write_text('{ "live-restore" : true }')
    assert not files({"path": str(path), "merge_json": {"live-restore": True}})["changed"]
    assert path.read_text() == '{ "live-restore" : true }'


def changed_lines(before: str, after: str) -> list[str]:
    """The lines of a diff that are not the same on both sides."""
    lines = difflib.ndiff(before.splitlines(), after.splitlines())
    return [line for line in lines if line.startswith(("+", "-"))]


def test_changed_value_stays_in_its_line(files: Run, tmp_path: Path) -> None:
    path = tmp_path / "daemon.json"
    patch = {"log-driver": "json-file", "log-opts": {"max-size": "10m", "max-file": "3"}, "live-restore": True}
    files({"path": str(path), "merge_json": patch})
    before = path.read_text()
    files({"path": str(path), "merge_json": {**patch, "log-opts": {"max-size": "20m", "max-file": "3"}}})
    assert changed_lines(before, path.read_text()) == [
        '-         "max-size": "10m",',
        '+         "max-size": "20m",',
    ]


@pytest.mark.parametrize("indent", ["  ", "\t", "        "])
def test_merged_json_keeps_the_admins_order_and_indentation(files: Run, tmp_path: Path, indent: str) -> None:
    path = tmp_path / "daemon.json"
    before = json.dumps({"zone": "höhe", "bip": "10.9.0.1/24", "a": {"b": 1}}, indent=indent, ensure_ascii=False)
    path.write_text(before + "\n")
    files({"path": str(path), "merge_json": {"a": {"c": 2}, "bip": "10.8.0.1/24", "new": True}})
    assert list(json.loads(path.read_text())) == ["zone", "bip", "a", "new"]
    assert f'{indent}"zone": "höhe",' in path.read_text().splitlines()
    assert len(changed_lines(before, path.read_text())) == 2 + 3 + 3  # bip; b and c; the brace of a, and new


@pytest.mark.parametrize("text", ["{broken", "[1, 2]"])
def test_json_that_cannot_be_merged_is_left_and_named(files: Run, tmp_path: Path, text: str) -> None:
    path = tmp_path / "daemon.json"
    path.write_text(text)
    with pytest.raises(ModuleFailedError) as stop:
        files({"path": str(path), "merge_json": {"a": 1}})
    assert stop.value.result["msg"].startswith(f"{path} was not changed")
    assert path.read_text() == text


DAEMON = {"live-restore": True, "insecure-registries": ["store:5080"]}
LIVE = {"live_keys": ["registry-mirrors", "insecure-registries"]}


def an_hour_ago(path: Path) -> int:
    """Makes the file older; its new time of modification in ns."""
    then = path.stat().st_mtime_ns - 3600 * 10**9
    os.utime(path, ns=(then, then))
    return path.stat().st_mtime_ns


def test_two_roles_share_a_file_and_neither_sees_drift_by_the_other(files: Run, managed: Any, tmp_path: Path) -> None:
    path = tmp_path / "daemon.json"
    path.write_text('{"bip": "10.9.0.1/24", "registry-mirrors": ["https://own"]}')
    runtime = {"path": str(path), "merge_json": DAEMON, "mode": "0644", **LIVE}
    client = {
        "path": str(path),
        "merge_json": {"registry-mirrors": ["https://m"], "insecure-registries": ["r:5000", "store:5080"]},
        "live": True,
    }
    first = files(runtime)["managed"]
    then = an_hour_ago(path)
    second = files(client, owner="client")["managed"]
    assert json.loads(path.read_text()) == {
        "bip": "10.9.0.1/24",
        "registry-mirrors": ["https://own", "https://m"],
        "live-restore": True,
        "insecure-registries": ["r:5000", "store:5080"],
    }
    assert managed.drift([*first, *second]) == []
    assert not files(runtime)["changed"]
    assert not files(client, owner="client")["changed"]
    assert path.stat().st_mtime_ns == then, "no unit restarts for what a reload applies"
    files({**client, "merge_json": {"registry-mirrors": [], "insecure-registries": []}}, owner="client")
    assert json.loads(path.read_text())["registry-mirrors"] == ["https://own"]
    assert json.loads(path.read_text())["insecure-registries"] == ["store:5080"], "the other role names it, too"
    assert managed.drift(first) == []


def test_keys_that_move_to_another_role_restart_nothing(files: Run, tmp_path: Path) -> None:
    """What one role merged before is merged by another one now."""
    path = tmp_path / "daemon.json"
    before = {**DAEMON, "registry-mirrors": ["https://m"], "insecure-registries": ["r:5000", "store:5080"]}
    files({"path": str(path), "merge_json": before, "mode": "0644"})
    then = an_hour_ago(path)
    files({"path": str(path), "merge_json": DAEMON, "mode": "0644", **LIVE})
    moved = {"registry-mirrors": ["https://m"], "insecure-registries": ["r:5000"]}
    files({"path": str(path), "merge_json": moved, "live": True}, owner="client")
    after = json.loads(path.read_text())
    assert (after["registry-mirrors"], sorted(after["insecure-registries"])) == (
        ["https://m"],
        ["r:5000", "store:5080"],
    )
    assert path.stat().st_mtime_ns == then


def test_a_registry_that_is_known_by_its_authority_from_now_on_goes_without_a_restart(
    files: Run, tmp_path: Path
) -> None:
    """What the role itself merged goes, the admin's stays; an empty key stays for the daemon that is reloaded."""
    path = tmp_path / "daemon.json"
    files({"path": str(path), "merge_json": DAEMON, "mode": "0644", **LIVE})
    now = {**DAEMON, "insecure-registries": []}
    then = an_hour_ago(path)
    files({"path": str(path), "merge_json": now, "mode": "0644", **LIVE})
    assert json.loads(path.read_text()) == now
    assert path.stat().st_mtime_ns == then
    path.write_text(json.dumps({**now, "insecure-registries": ["admin:5000"]}))
    assert not files({"path": str(path), "merge_json": now, "mode": "0644", **LIVE})["changed"]


def test_other_keys_make_the_file_younger_and_a_pending_restart_stays_pending(files: Run, tmp_path: Path) -> None:
    path = tmp_path / "daemon.json"
    files({"path": str(path), "merge_json": DAEMON, **LIVE})
    then = an_hour_ago(path)
    files({"path": str(path), "merge_json": {**DAEMON, "debug": True, "insecure-registries": ["x"]}, **LIVE})
    pending = path.stat().st_mtime_ns
    assert pending > then
    files({"path": str(path), "merge_json": {"registry-mirrors": ["https://m"]}, "live": True}, owner="client")
    assert path.stat().st_mtime_ns == pending


def test_change_by_hand_of_a_shared_file_is_seen(
    files: Run, managed: Any, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    path = tmp_path / "daemon.json"
    found = files({"path": str(path), "merge_json": DAEMON, "mode": "0644", **LIVE})["managed"]
    path.write_text(path.read_text().replace("true", "false"))
    assert managed.drift(found) == snapshot
    path.unlink()
    assert managed.drift(found) == [f"{path} is missing"]
    files({"path": str(path), "merge_json": DAEMON, "mode": "0644", **LIVE})
    path.chmod(0o640)
    assert managed.drift(found) == snapshot


def test_files_that_an_owner_no_longer_names_are_removed(files: Run, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a", "b", "admins", "merged.json")]
    paths[2].write_text("x")
    items = [{"path": str(path), "content": "x"} for path in paths[:2]]
    files(*items, {"path": str(paths[3]), "merge_json": {"a": 1}}, owner="client")
    files(items[0], owner="another")
    assert files(items[0], owner="client", check=True)["changed_paths"] == [str(paths[1])]
    assert paths[1].exists()
    result = files(items[0], owner="client")
    assert (result["changed_paths"], [path.exists() for path in paths]) == ([str(paths[1])], [True, False, True, True])
    assert not files(items[0], owner="client")["changed"]
    assert files(owner="client")["changed_paths"] == [str(paths[0])]


def test_a_folder_that_is_empty_then_goes_too(files: Run, tmp_path: Path) -> None:
    paths = [tmp_path / "certs.d" / name / "hosts.toml" for name in ("mine", "shared")]
    for path in paths:
        path.parent.mkdir(parents=True)
    (paths[1].parent / "of-the-admin").write_text("x")
    files(*({"path": str(path), "content": "x"} for path in paths), owner="client")
    files(owner="client")
    assert [path.parent.exists() for path in paths] == [False, True]


def test_a_file_of_ours_is_not_copied_at_each_change(files: Run, tmp_path: Path) -> None:
    path = tmp_path / "hosts.toml"
    path.write_text("of the admin")
    for text in ("one", "two", "three"):
        files({"path": str(path), "content": text, "backup": True}, owner="client")
    (copy,) = tmp_path.glob("*.pai-backup")
    assert copy.read_text() == "of the admin"
