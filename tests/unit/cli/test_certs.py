"""`pai-install certs` from argv to exit code."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.cli.schema import SCHEMAS
from pai_install.errors import ExitCode
from tests.unit.cli.stub_environment import World, facts, run, write_site
from tests.unit.runs import done, event

DAY = 86400


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return write_site(tmp_path / "cluster")


def in_days(days: float) -> int:
    """Seconds since 1970 of a time in so many days, and a minute."""
    return int(time.time() + days * DAY) + 60


def undated(text: str, ends: int) -> str:
    """The text with the day of the snapshot in place of the day of a time."""
    return text.replace(f"{datetime.fromtimestamp(ends, UTC):%Y-%m-%d}", "2026-12-16")


def world(ends: int) -> World:
    """A cluster whose API server's certificate ends at that time."""
    master = facts("master")
    master["pai"] |= {
        "certificates": [{"path": "/etc/kubernetes/pki/apiserver.crt", "expires": ends, "problem": ""}],
        "cluster": {"error": "", "nodes": [], "pods": []},
        "kubernetes": {"control_plane": True, "node": True, "joined": True},
    }
    others = (event("ok", name, ansible_facts=facts(name)) for name in ("one", "two"))
    renewed = done(event("ok", "master", "Renew", changed=True, renewed=["x"], restarted=["etcd"]))
    return World(
        script={
            "observe.yml": done(event("ok", "master", ansible_facts=master), *others),
            "certs-renew.yml": renewed,
            "kubeconfig.yml": done(event("ok", "master", "Install the kubeconfig", changed=True)),
            "verify.yml": done(event("ok", "master", "Verify")),
        }
    )


def test_show_as_table_and_data(site: Path, in_world: Any, capsys: Any, snapshot: SnapshotAssertion) -> None:
    ends = in_days(20)
    in_world(world(ends))
    assert run(["certs", "show", "--site", str(site)]) == ExitCode.OK
    out = capsys.readouterr().out
    assert undated(out, ends) == snapshot
    assert run(["certs", "show", "--site", str(site), "--format", "json"]) == ExitCode.OK
    data = json.loads(capsys.readouterr().out)
    jsonschema.validate(data, SCHEMAS["certificates"]())
    assert [one["days"] for one in data["certificates"]] == [20]


def test_one_that_has_ended_is_a_failure(site: Path, in_world: Any, capsys: Any) -> None:
    in_world(world(in_days(-1)))
    assert run(["certs", "show", "--site", str(site)]) == ExitCode.VERIFICATION_FAILED
    assert "FAIL" in capsys.readouterr().out


def test_renewal_runs_brings_the_kubeconfig_and_proves(
    site: Path, in_world: Any, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    ends = in_days(20)
    acted = in_world(world(ends))
    assert run(["certs", "renew", "--site", str(site), "--within", "30", "--yes"]) == ExitCode.OK
    assert [request.playbook for request in acted.ansible.requests] == [
        "observe.yml",
        "certs-renew.yml",
        "kubeconfig.yml",
        "verify.yml",
    ]
    assert undated(capsys.readouterr().err, ends) == snapshot


def test_it_asks_first(site: Path, in_world: Any, capsys: Any) -> None:
    in_world(world(in_days(20)))
    assert run(["certs", "renew", "--site", str(site)]) == ExitCode.USAGE
    assert "--yes" in capsys.readouterr().err
