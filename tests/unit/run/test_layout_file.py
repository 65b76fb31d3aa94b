"""layout.yaml as commands write it, and what is forgotten with a machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.errors import ExitCode
from pai_install.run.layout_file import (
    edited_layout,
    forget_host_keys,
    forgetting_worker,
    read_layout,
    site_with,
    writing_worker,
)
from pai_install.run.state import open_state
from tests.errors import raises
from tests.unit.cli.stub_environment import LAYOUT, write_site


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return write_site(tmp_path / "cluster")


def forget(site: Path, how: str) -> None:
    """worker `one` is forgotten."""
    work = forgetting_worker(site, open_state(site))
    assert work(("one",), {"how": how, "addresses": {"one": "10.0.0.2", "two": "10.0.0.3"}}) == ()


def test_mode_and_link_of_the_file_stay(site: Path, tmp_path: Path) -> None:
    real = tmp_path / "real.yaml"
    real.write_text(LAYOUT)
    real.chmod(0o640)
    (site / "layout.yaml").unlink()
    (site / "layout.yaml").symlink_to(real)
    forget(site, "remove")
    assert (site / "layout.yaml").is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert "hostname: one" not in real.read_text()


def test_only_machines_that_came_through_are_taken_out(site: Path) -> None:
    """The executor gives the worker the hosts that are left."""
    forget(site, "remove")
    assert "hostname: two" in read_layout(site)


@pytest.mark.parametrize(("how", "kept"), [("remove", False), ("replaced", False), ("absent", True), ("keep", True)])
def test_host_key_history_and_baseline_go_with_the_machine(site: Path, how: str, kept: bool) -> None:
    state = open_state(site)
    state.known_hosts.write_text("10.0.0.2 ssh-ed25519 A\n[10.0.0.2]:22 ssh-rsa B\n10.0.0.3 ssh-ed25519 C\n")
    (state.health / "history").mkdir(parents=True)
    (state.health / "history" / "one.jsonl").write_text("{}\n")
    forget(site, how)
    assert state.known_hosts.read_text().startswith("10.0.0.2") == kept
    assert "10.0.0.3 ssh-ed25519 C" in state.known_hosts.read_text()
    assert (state.health / "history" / "one.jsonl").exists() == kept


def test_what_is_not_proven_of_it_is_no_matter(site: Path) -> None:
    state = open_state(site)
    state.proof.write_text(json.dumps({"unproven": {"one": {"why": "x"}, "two": {"why": "y"}}}))
    forget(site, "remove")
    assert list(json.loads(state.proof.read_text())["unproven"]) == ["two"]


def test_a_file_that_no_command_can_edit_is_named(site: Path) -> None:
    (site / "layout.yaml").write_text(
        LAYOUT.replace("machine-type: cpu, pai-worker", "machine-type: cpu, absent: &x false, pai-worker", 1)
    )
    with raises("layout-not-editable", "layout.yaml:7") as caught:
        edited_layout(site, ("one",), "absent")
    assert caught.value.exit_code is ExitCode.PREFLIGHT_FAILED


def test_a_site_that_would_be_invalid_is_refused_with_the_place(site: Path, snapshot: SnapshotAssertion) -> None:
    with raises("edited-site-invalid") as caught:
        site_with(site, edited_layout(site, ("one", "two"), "remove"))
    assert caught.value.details == snapshot
    assert site_with(site, edited_layout(site, ("one",), "remove")).site.workers[0].hostname == "two"


def test_a_file_that_has_changed_meanwhile_is_not_written(site: Path) -> None:
    work = writing_worker(site)
    with raises("layout-changed-meanwhile"):
        work((), {"before": "another text", "text": "new"})
    work((), {"before": LAYOUT, "text": LAYOUT + "# more\n"})
    assert read_layout(site).endswith("# more\n")


def test_host_keys_without_a_file_are_nothing_to_forget(tmp_path: Path) -> None:
    forget_host_keys(tmp_path / "none", ["10.0.0.2"])
    assert not (tmp_path / "none").exists()
