"""Old sites beside what becomes of them: golden folders `old` and `new`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.cli.main import run
from pai_install.errors import ExitCode
from pai_install.migrate import migrate
from pai_install.migrate.account import Fate
from pai_install.migrate.emit import scalar
from pai_install.migrate.model import kept_masters, why_no_control_plane
from pai_install.site import SiteInvalid, load_site
from pai_install.system.plain import plain_text
from tests.errors import raises

GOLDEN = Path(__file__).parents[2] / "golden" / "site" / "migrate"
CASES = sorted(path.parent for path in GOLDEN.glob("*/old"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_old_sites_become_current_ones(case: Path, tmp_path: Path) -> None:
    done = migrate(case / "old", tmp_path)
    expected = {path.name: path.read_text() for path in (case / "new").iterdir()}
    assert {path.name: path.read_text() for path in done.files} == expected
    assert done.reading.site is not None
    assert [problem for problem in done.reading.problems if problem.is_error] == []


def test_lists_of_machines_mean_what_they_did(tmp_path: Path) -> None:
    migrate(GOLDEN / "lists" / "old", tmp_path)
    site = load_site(tmp_path).site
    assert [(m.hostname, m.hostip) for m in site.control_planes] == [("head-01", "10.1.0.1")]
    assert [(m.hostname, m.hostip) for m in site.workers] == [("gpu-001", "10.1.1.1"), ("gpu-002", "10.1.1.2")]
    assert site.settings.docker_data_root == "/data/docker"
    assert site.settings.container_default_runtime == "nvidia"


def test_logins_of_a_v0_layout_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAI_PASSWORD_GPU_02", "another")
    migrate(GOLDEN / "layout-v0" / "old", tmp_path)
    site = load_site(tmp_path).site
    logins = {m.hostname: (m.ssh.user, m.ssh.port, m.ssh.key_file) for m in site.machines}
    assert logins == {
        "infra-01": ("core", 2222, None),
        "gpu-01": ("core", 2222, None),
        "gpu-02": ("other", 22, Path("/keys/gpu-02")),
    }
    passwords = [m.ssh.password.get_secret_value() for m in site.machines if m.ssh.password]
    assert passwords == ["one: password", "one: password", "another"]
    assert site.settings.service_cidr == "10.254.0.0/16"


def test_what_was_dropped_is_said_with_why(snapshot: SnapshotAssertion) -> None:
    assert why_no_control_plane(4) == snapshot


@pytest.mark.parametrize(("count", "kept"), [(0, 0), (1, 1), (2, 1), (3, 3), (4, 3), (5, 5), (6, 5), (7, 5)])
def test_how_many_masters_stay(count: int, kept: int) -> None:
    assert kept_masters(count) == kept


@pytest.mark.parametrize(
    "text", ["yes", "1.5", "010", "a: b", "#x", "", " x", "!x", "*x", "é", "{{ x }}", "'", '"', "\\"]
)
def test_text_survives_being_written(tmp_path: Path, text: str) -> None:
    old = tmp_path / "old"
    shutil.copytree(GOLDEN / "one-box" / "old", old)
    path = old / "cluster-configuration.yaml"
    path.write_text(path.read_text().replace("username: admin", f"username: admin\n  password: {scalar(text)}"))
    migrate(old, tmp_path / "new")
    password = load_site(tmp_path / "new").site.settings.password
    assert (password.get_secret_value() if password else "") == text.strip()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("mine")
    with raises("new-site-exists", "config.yaml") as caught:
        migrate(GOLDEN / "lists" / "old", tmp_path)
    assert caught.value.exit_code is ExitCode.USAGE
    assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"]


def test_files_with_passwords_are_the_owners_only(tmp_path: Path) -> None:
    migrate(GOLDEN / "layout-v0" / "old", tmp_path)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == {
        "layout.yaml": 0o644,
        "config.yaml": 0o600,
        "services-configuration.yaml": 0o600,
        "migrated.txt": 0o644,
    }


def test_a_folder_without_an_old_site(tmp_path: Path) -> None:
    with raises("migrate-no-old-site"):
        migrate(tmp_path, tmp_path / "new")


def test_a_current_site_is_left_alone(tmp_path: Path) -> None:
    with raises("migrate-already-current"):
        migrate(GOLDEN / "lists" / "new", tmp_path / "new")


def test_lines_that_name_no_machine_are_placed(tmp_path: Path) -> None:
    (tmp_path / "master.csv").write_text("m1,10.0.0.1\nm2\n")
    (tmp_path / "worker.csv").write_bytes(b"\xff\xfe")
    (tmp_path / "config").write_text("user: [x\n")
    with raises("site-invalid", kind=SiteInvalid) as caught:
        migrate(tmp_path, tmp_path / "new")
    assert [(Path(p.file).name, p.line, p.code) for p in caught.value.problems] == [
        ("master.csv", 2, "site.csv"),
        ("worker.csv", 1, "site.encoding"),
        ("config", 1, "site.syntax"),
    ]


@pytest.mark.parametrize(
    "content", ["", "machine-list: []\n", "a: [\n", "- x\n", "machine-list: {a: 1}\nmachine-sku: 3\n"]
)
def test_old_layouts_that_are_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "cluster-configuration.yaml").write_text(content)
    with raises("site-invalid", kind=SiteInvalid):
        migrate(tmp_path, tmp_path / "new")


def test_half_filled_old_layouts_are_written_with_what_is_left_to_do(tmp_path: Path) -> None:
    (tmp_path / "layout.yaml").write_text(
        "machine-list:\n  - {hostname: a, hostip: IP, k8s-role: master}\n  - {k8s-role: worker, machine-type: x}\n"
    )
    done = migrate(tmp_path, tmp_path / "new")
    assert done.reading.site is None
    assert "site.ip-address" in [problem.code for problem in done.reading.problems]


def test_services_that_are_wrong_are_not_taken_over(tmp_path: Path) -> None:
    old = tmp_path / "old"
    shutil.copytree(GOLDEN / "one-box" / "old", old)
    (old / "services-configuration.yaml").write_text("webportal: [1]\n")
    done = migrate(old, tmp_path / "new")
    assert "services-configuration.yaml" in [note.what for note in done.notes]
    assert not (tmp_path / "new" / "services-configuration.yaml").exists()


def test_the_verb_in_text_and_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    old = str(GOLDEN / "lists" / "old")
    assert run(["migrate", old, "--site", str(tmp_path / "a")]) == 0
    text = capsys.readouterr().out
    assert text == snapshot
    assert text.endswith("the new site is valid\n")
    assert run(["migrate", old, "--site", str(tmp_path / "b"), "--format", "json"]) == 0
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (report["schema_version"], report["ok"]) == (1, True)
    assert {"what": "config: branch_name", "why": "OpenPAI's sources are not used"} in report["notes"]
    assert run(["migrate", old, "--site", str(tmp_path / "b")]) == 2
    assert "changeme" not in capsys.readouterr().out


def test_a_list_saved_as_utf16_is_told_with_the_way_out(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    (tmp_path / "master.csv").write_text("m1,10.0.0.1\n", encoding="utf-16")
    (tmp_path / "worker.csv").write_text("w1,10.0.0.2\n")
    (tmp_path / "config").write_text("user: x\n")
    with raises("site-invalid", kind=SiteInvalid) as caught:
        migrate(tmp_path, tmp_path / "new")
    (problem,) = caught.value.problems
    assert problem.message == snapshot
    assert problem.remedy == snapshot


@pytest.mark.parametrize("masters", ["", "\n \n"])
def test_no_master_makes_no_site(tmp_path: Path, masters: str, snapshot: SnapshotAssertion) -> None:
    (tmp_path / "master.csv").write_text(masters)
    (tmp_path / "worker.csv").write_text("w1,10.0.0.2\n")
    (tmp_path / "config").write_text("user: x\n")
    with raises("site-invalid", kind=SiteInvalid) as caught:
        migrate(tmp_path, tmp_path / "new")
    assert caught.value.details == snapshot
    assert not (tmp_path / "new").exists()


_LAYOUT = """\
machine-list:
  - {hostname: a, hostip: 10.0.0.1, k8s-role: master, machine-type: x}
  - b
machine-sku: {x: {mem: 1, gpu: {type: t, count: 1}, cpu: {vcore: 1}, os: ubuntu16.04}}
"""


def test_an_entry_without_keys_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "layout.yaml").write_text(_LAYOUT)
    done = migrate(tmp_path, tmp_path / "new")
    (note,) = [note for note in done.notes if note.what == "layout.yaml: machine-list[]"]
    assert "line 3 (b)" in note.why


@pytest.mark.parametrize(
    "login",
    [
        "ssh-username: me\nssh-password: secret\n",
        "default-machine-properties: {ssh-username: me, ssh-password: secret}\n",
    ],
)
def test_the_login_of_a_quick_start_counts_in_a_layout(tmp_path: Path, login: str) -> None:
    (tmp_path / "layout.yaml").write_text(_LAYOUT + login)
    done = migrate(tmp_path, tmp_path / "new")
    settings = (tmp_path / "new" / "config.yaml").read_text()
    assert "user: me\n" in settings
    assert "password: secret\n" in settings
    assert [entry for entry in done.account if "ssh-" in entry.path and entry.outcome is Fate.DROPPED] == []


def test_a_machine_of_the_lists_that_the_layout_lacks_is_named(tmp_path: Path) -> None:
    (tmp_path / "layout.yaml").write_text(_LAYOUT)
    (tmp_path / "master.csv").write_text("a,10.0.0.1\n")
    (tmp_path / "worker.csv").write_text("\nw7,10.0.0.7\n")
    notes = migrate(tmp_path, tmp_path / "new").notes
    assert [note.why.split(" is ")[0] for note in notes if "w7" in note.why] == ["line 2: w7 (10.0.0.7)"]


# turns the direction of text, hides, marks the order of bytes, and a tag beyond the first plane
_HIDDEN = "\u202e\u200b\u2066\ufeff\U000e0041"


def test_no_file_of_the_new_site_has_hidden_letters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = tmp_path / "old"
    old.mkdir()
    (old / "master.csv").write_text(f"m{_HIDDEN}1,10.0.0.1\n")
    (old / "worker.csv").write_text(f'"w\x1b[2J{_HIDDEN}",10.0.0.2\n')
    written = f'user: "a\\u202e\\u200b{_HIDDEN}"\npassword: b{_HIDDEN} # c{_HIDDEN}\nz{_HIDDEN}: 1\n'
    (old / "config").write_text(written)
    (old / "services-configuration.yaml").write_text(f"a{_HIDDEN}: b{_HIDDEN} # {_HIDDEN}\n")
    (old / f"n{_HIDDEN}\x1b[2J").touch()
    run(["migrate", str(old), "--site", str(tmp_path / "new"), "--account"])
    shown = capsys.readouterr()
    for text in (shown.out, shown.err, *(path.read_text() for path in (tmp_path / "new").glob("*.*"))):
        assert plain_text(text) == text


@pytest.mark.parametrize(
    "name", ["master.csv", "worker.csv", "config", "services-configuration.yaml", "layout.yaml", "layout.yml"]
)
@pytest.mark.parametrize("way", ["absolute", "relative", "over another", "lost", "device"])
def test_a_link_out_of_the_old_site_is_refused(tmp_path: Path, name: str, way: str) -> None:
    old, outside = tmp_path / "old", tmp_path / "outside.yaml"
    shutil.copytree(GOLDEN / "lists" / "old", old)
    outside.write_text("user: secret\n")
    (old / name).unlink(missing_ok=True)
    (old / "other").symlink_to(outside)
    targets = {"absolute": str(outside), "relative": "../outside.yaml", "over another": "other", "lost": "../lost"}
    (old / name).symlink_to(targets.get(way, "/dev/zero"))
    with raises("migrate-link") as caught:
        migrate(old, tmp_path / "new")
    assert caught.value.message.endswith(f"{name}: it is a link out of the folder")
    assert not (tmp_path / "new").exists()


def test_a_link_within_the_old_site_is_followed(tmp_path: Path) -> None:
    old = tmp_path / "old"
    shutil.copytree(GOLDEN / "lists" / "old", old)
    (old / "config").rename(old / "settings")
    (old / "config").symlink_to("settings")
    (tmp_path / "link").symlink_to(old)
    done = migrate(tmp_path / "link", tmp_path / "new")
    assert done.reading.site is not None
