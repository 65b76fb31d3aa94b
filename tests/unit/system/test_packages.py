"""Packages of the controller host: whoever comes second waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import filelock
import pytest

from pai_install.system import packages
from pai_install.system.packages import install
from pai_install.system.proc import Completed
from tests.errors import raises

LOCKED = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 3010 (apt-get)"
Apt = Callable[[Sequence[str]], Completed]


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Apt], None]:
    """A box whose apt is the function that it is called with."""
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(packages, "_LOCK", tmp_path / "lock")
    monkeypatch.setattr(packages, "_PAUSE_S", 0.0)

    def has(apt: Apt) -> None:
        monkeypatch.setattr(packages, "run", lambda argv, **_options: apt(argv))

    return has


def ended(argv: Sequence[str], stderr: str = "") -> Completed:
    return Completed(tuple(argv), 100 if stderr else 0, "", stderr)


def test_installing_needs_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with raises("packages-need-root") as refused:
        install(["gcc", "libseccomp-dev"])
    assert refused.value.remedy.endswith("apt-get install gcc libseccomp-dev")


def test_apt_is_asked_for_exactly_these_and_waits_for_others(box: Any) -> None:
    called: list[list[str]] = []

    def apt(argv: Sequence[str]) -> Completed:
        called.append(list(argv))
        return ended(argv)

    box(apt)
    install(["gcc"])
    assert called[0][-1] == "update"
    assert called[1][-3:] == ["--no-install-recommends", "install", "gcc"]
    assert "DPkg::Lock::Timeout=300" in called[1]


def test_lists_that_somebody_else_fetches_are_waited_for(box: Any) -> None:
    answers = [LOCKED, LOCKED, "", ""]
    called: list[str] = []

    def apt(argv: Sequence[str]) -> Completed:
        called.append(argv[-1])
        return ended(argv, answers.pop(0))

    box(apt)
    install(["gcc"])
    assert called == ["update", "update", "update", "gcc"]


def test_a_source_that_cannot_be_read_does_not_keep_packages_from_others(box: Any) -> None:
    box(lambda argv: ended(argv, "E: The repository is not signed" if argv[-1] == "update" else ""))
    install(["gcc"])


def test_only_one_process_installs_at_a_time(box: Any) -> None:
    inside: list[str] = []

    def apt(argv: Sequence[str]) -> Completed:
        inside.append(argv[-1])
        if argv[-1] == "update":
            time.sleep(0.1)
        return ended(argv)

    box(apt)
    both = [threading.Thread(target=install, args=([name],)) for name in ("gcc", "nft")]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert inside in (["update", "gcc", "update", "nft"], ["update", "nft", "update", "gcc"])


def test_somebody_who_never_ends_is_an_error_with_a_remedy(box: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "_WAIT_S", 0)
    box(ended)
    with filelock.FileLock(packages._LOCK), raises("packages-locked", "pai-install") as refused:
        install(["gcc"])
    assert refused.value.remedy == "repeat the command after its end"


def test_installing_restarts_no_service_that_nobody_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, str]] = []

    def apt(argv: Sequence[str], **options: Any) -> Completed:
        given.append(options["env"])
        return ended(argv)

    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(packages, "_LOCK", tmp_path / "lock")
    monkeypatch.setattr(packages, "run", apt)
    install(["x"])
    assert [(one["DEBIAN_FRONTEND"], one["NEEDRESTART_SUSPEND"]) for one in given] == [("noninteractive", "1")] * 2
