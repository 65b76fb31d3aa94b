"""What a box must have: every gap named at once, packages installed only after a yes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.errors import ExitCode
from pai_install.lab import requirements
from pai_install.lab.requirements import (
    CAPABILITIES,
    GIB,
    NAMESPACES,
    NETWORK_PROBES,
    BoxFacts,
    ensure_requirements,
    gaps,
    missing_packages,
    observe_box,
)
from pai_install.lab.spec import LabSpec
from pai_install.system import packages
from tests.errors import raises

GOOD = BoxFacts(
    is_root=True,
    capabilities=(1 << 41) - 1,
    missing_commands=(),
    has_keyring=True,
    filesystems=frozenset({"ext4", "overlay"}),
    namespaces=frozenset(NAMESPACES),
    has_cgroups=True,
    probes=dict.fromkeys(NETWORK_PROBES, True),
    free_bytes=100 * GIB,
    free_memory=8 * GIB,
    has_apt=True,
)


def test_a_good_box_has_no_gaps() -> None:
    assert gaps(GOOD, 3) == ()
    assert missing_packages(GOOD) == ()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"is_root": False}, "root"),
        ({"capabilities": ((1 << 41) - 1) & ~(1 << 21)}, "CAP_SYS_ADMIN"),
        ({"filesystems": frozenset({"ext4"})}, "overlay"),
        ({"namespaces": frozenset({"mnt"})}, "no pid namespaces"),
        ({"has_cgroups": False}, "control groups"),
        ({"probes": {"vxlan": False, "veth": True}}, "no vxlan"),
        ({"free_bytes": 12 * GIB}, "12.0 GiB free"),
        ({"free_memory": 512 << 20}, "memory: 0.5 GiB"),
        ({"missing_commands": ("ip",), "has_apt": False}, "no apt-get"),
        ({"hidden_commands": ("nft", "tc")}, "PATH: add /usr/sbin for nft, tc"),
    ],
)
def test_each_gap_is_named(change: dict[str, Any], word: str) -> None:
    assert any(word in gap for gap in gaps(replace(GOOD, **change), 3))


def test_gaps_are_named_together() -> None:
    bad = replace(GOOD, filesystems=frozenset(), has_cgroups=False, free_bytes=0, probes={"bridge": False})
    assert len(gaps(bad, 3)) == 4


def test_without_root_capabilities_are_not_held_against_the_box() -> None:
    assert len(gaps(replace(GOOD, is_root=False, capabilities=0), 3)) == 1


def test_what_is_needed_grows_with_the_machines() -> None:
    box = replace(GOOD, free_bytes=10 * GIB)
    assert gaps(box, 1) == ()
    assert gaps(box, 3)


def test_every_capability_the_lab_uses_is_checked() -> None:
    assert len(gaps(replace(GOOD, capabilities=0), 1)) == len(CAPABILITIES)


def test_packages_are_named_once_each() -> None:
    facts = replace(GOOD, missing_commands=("ssh", "ssh-keygen", "nft", "systemd-nspawn"), has_keyring=False)
    assert missing_packages(facts) == ("debian-archive-keyring", "nftables", "openssh-client", "systemd-container")


@pytest.fixture
def box(monkeypatch: pytest.MonkeyPatch, stand_in: Any, tmp_path: Path) -> Any:
    """A box without nft, which apt then installs."""
    asked: Any = stand_in(requirements, packages)
    missing = replace(GOOD, missing_commands=("nft",))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(packages, "_LOCK", tmp_path / "apt.lock")
    monkeypatch.setattr(requirements, "observe_box", lambda: GOOD if asked.matching("apt-get") else missing)
    return asked


def test_packages_are_installed_after_a_yes(spec: LabSpec, box: Any, snapshot: SnapshotAssertion) -> None:
    questions: list[str] = []

    def confirm(question: str) -> bool:
        questions.append(question)
        return True

    assert ensure_requirements(spec, confirm=confirm, progress=lambda _line: None) == ("nftables",)
    assert "nftables" in questions[0]
    assert box.matching("apt-get") == snapshot


def test_nothing_is_installed_after_a_no(spec: LabSpec, box: Any) -> None:
    with raises("lab-packages-missing") as caught:
        ensure_requirements(spec, confirm=lambda _question: False, progress=lambda _line: None)
    assert caught.value.exit_code is ExitCode.PREFLIGHT_FAILED
    assert "apt-get install nftables" in caught.value.remedy
    assert box.commands == []


def test_nobody_is_asked_on_a_box_that_can_never_run_it(
    spec: LabSpec, box: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        requirements, "observe_box", lambda: replace(GOOD, missing_commands=("nft",), has_cgroups=False)
    )
    with raises("lab-requirements-missing") as caught:
        ensure_requirements(spec, confirm=lambda _question: pytest.fail("asked"), progress=lambda _line: None)
    assert "control groups" in caught.value.details
    assert caught.value.exit_code is ExitCode.PREFLIGHT_FAILED


def test_a_complete_box_is_left_alone(spec: LabSpec, box: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "observe_box", lambda: GOOD)
    refuse = lambda _question: pytest.fail("asked")  # noqa: E731 - one line
    assert ensure_requirements(spec, confirm=refuse, progress=lambda _line: None) == ()
    assert box.commands == []


def test_looking_at_this_box_makes_facts_of_the_right_kind() -> None:
    facts = observe_box()
    assert facts.free_bytes > 0
    assert facts.free_memory > 0
    assert {"mnt", "net"} <= facts.namespaces
    assert set(facts.missing_commands) <= set(requirements.COMMANDS)


def test_commands_that_path_hides_are_not_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "sbin").mkdir()
    (tmp_path / "sbin/nft").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(requirements, "_ADMIN_PATH", str(tmp_path / "sbin"))
    facts = observe_box()
    assert facts.hidden_commands == ("nft",)
    assert set(facts.missing_commands) == set(requirements.COMMANDS) - {"nft"}
    assert facts.probes == {}


def test_probes_report_each_feature_by_what_the_kernel_did(stand_in: Any) -> None:
    asked = stand_in(requirements)
    asked.answer("unshare --net", stdout="veth\nnf_tables\n")
    assert requirements._probe_network() == {
        "veth": True,
        "bridge": False,
        "vxlan": False,
        "nf_tables": True,
        "NAT": False,
    }
