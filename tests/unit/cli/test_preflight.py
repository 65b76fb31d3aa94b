"""The verb preflight on a scripted engine: from argv to exit code."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.engine.base import Event
from pai_install.errors import ExitCode
from tests.unit.cli.stub_environment import World, run
from tests.unit.preflight.machines import NAMES, good, write_site
from tests.unit.runs import done, event

SOURCE = Finding("component-source", Verdict.PASS, "controller host", "every component is in the cache")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return write_site(tmp_path / "cluster")


@pytest.fixture(name="in_world")
def _in_world(in_world: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    def put(*events: Event) -> World:
        world: World = in_world(World(script={"preflight.yml": done(*events)}))
        monkeypatch.setattr("pai_install.app.preflight.source_finding", lambda _site: SOURCE)
        return world

    return put


def answers(**hostnames: str) -> list[Event]:
    """Every machine answers; a keyword gives one the host name it has itself."""
    found = []
    for name in NAMES:
        seen = good(name)
        seen["identity"]["hostname"] = hostnames.get(name, name)
        seen["clock"] = {"began": time.time() - 1, "ended": time.time()}
        found.append(event("ok", name, evidence=seen))
    return found


def test_ready(site: Path, in_world: Any, capsys: Any) -> None:
    in_world(*answers())
    assert run(["preflight", "--site", str(site)]) == ExitCode.OK
    out = capsys.readouterr().out
    assert out.splitlines()[-1].startswith("ready to install: 3 machines checked")
    assert "PASS " not in out.split("\n\n", 1)[1]


def test_in_the_way(site: Path, in_world: Any, capsys: Any) -> None:
    in_world(*answers(worker1="gpu-07"))
    assert run(["preflight", "--site", str(site)]) == ExitCode.PREFLIGHT_FAILED
    out = capsys.readouterr().out
    assert "FAIL the host name is gpu-07, but worker1 in layout.yaml [hostname]" in out
    assert "what to do: run sudo hostnamectl set-hostname worker1" in out
    assert out.splitlines()[-1].startswith("not ready: 1 failure (hostname)")


def test_forced(site: Path, in_world: Any, capsys: Any) -> None:
    in_world(*answers(worker1="gpu-07"))
    words = ["preflight", "--site", str(site), "--force-check", "hostname", "--format", "json"]
    assert run(words) == ExitCode.OK
    report = json.loads(capsys.readouterr().out)
    assert report["forced"] == ["hostname"]
    assert report["machines"]["worker1"] == "WARN"
    assert report["findings"][0]["subject"] == "controller host"


def test_report_is_kept_for_the_owner(site: Path, in_world: Any, capsys: Any) -> None:
    in_world(*answers())
    run(["preflight", "--site", str(site), "--format", "json"])
    kept = list(site.glob(".pai/runs/*/preflight.json"))
    assert len(kept) == 1
    assert kept[0].stat().st_mode & 0o777 == 0o600
    assert json.loads(kept[0].read_text()) == json.loads(capsys.readouterr().out)


def test_a_machine_that_is_off(site: Path, in_world: Any, capsys: Any) -> None:
    in_world(*answers()[:2], event("unreachable", "worker2", msg="port 22: No route to host"))
    assert run(["preflight", "--site", str(site)]) == ExitCode.PREFLIGHT_FAILED
    assert "FAIL The machine is unreachable" in capsys.readouterr().out


def test_limit_and_all(site: Path, in_world: Any, capsys: Any) -> None:
    world = in_world(*answers(worker2="other"))
    assert run(["preflight", "--site", str(site), "--limit", "worker1", "--all"]) == ExitCode.OK
    assert world.ansible.requests[0].limit == ("master", "worker1")
    assert "PASS the host name is the one in layout.yaml [hostname]" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["--force-check", "nonsense"], ["--limit", "worker9"]])
def test_wrong_words(site: Path, in_world: Any, capsys: Any, words: list[str]) -> None:
    world = in_world()
    assert run(["preflight", "--site", str(site), *words]) == ExitCode.USAGE
    assert words[1] in capsys.readouterr().err
    assert world.ansible.requests == []


def test_checks_are_listed_without_a_site(capsys: Any) -> None:
    assert run(["preflight", "--list-checks"]) == ExitCode.OK
    out = capsys.readouterr().out
    assert all(word in out for word in ("component-source", "hostname", "swap", "packet-size", "reachable"))
    assert run(["preflight", "--list-checks", "--format", "json"]) == ExitCode.OK
    listed = json.loads(capsys.readouterr().out)
    assert listed["schema_version"] == 1
    assert [[check["id"], check["title"]] for check in listed["checks"]] == [
        re.split(r" {2,}", line, maxsplit=1) for line in out.splitlines()
    ]


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("html", ["Preflight of cluster", "gpu-07", "10.0.0.2", "control plane"]),
        ("junit", ['testsuites name="pai-install preflight"', 'failures="1"']),
        ("prometheus", ['pai_preflight_verdict{machine="worker1",sku="gpu",action="config"} 3']),
    ],
)
def test_other_forms(site: Path, in_world: Any, form: str, words: list[str], tmp_path: Path) -> None:
    in_world(*answers(worker1="gpu-07"))
    out = tmp_path / "report"
    code = run(["preflight", "--site", str(site), "--format", form, "--out", str(out)])
    assert code == ExitCode.PREFLIGHT_FAILED
    assert [word for word in words if word not in out.read_text()] == []


def test_the_page_is_kept_with_the_run(site: Path, in_world: Any) -> None:
    in_world(*answers())
    run(["preflight", "--site", str(site)])
    page = next(site.glob(".pai/runs/*/preflight.html"))
    assert page.stat().st_mode & 0o777 == 0o600
    assert 'href="preflight.json"' in page.read_text()
