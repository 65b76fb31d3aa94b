"""`pai-install vc` from argv to exit code: what the site's files say, and the edit of them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml
from syrupy.assertion import SnapshotAssertion

from pai_install.cli.schema import SCHEMAS
from pai_install.cluster.client import NoClusterError
from pai_install.errors import ExitCode
from pai_install.schedulers.kueue.compile import flavor_name
from pai_install.schedulers.last_applied import kept_object
from pai_install.scheduling.read import migrated_of, scheduling_of
from pai_install.site.load import SERVICES, load_site
from tests.unit.cli.stub_environment import World, run
from tests.unit.cluster.fake import FakeCluster
from tests.unit.schedulers.hived.test_migration import QUICK_START
from tests.unit.scheduling.test_read import VALID
from tests.unit.scheduling.usage.objects import cluster_queue, workload
from tests.unit.site.rules.scheduling.blocks import BLOCK
from tests.unit.site.rules.scheduling.sites import ABSENT, GROUPS, LAYOUT
from tests.unit.site.sites import write_site


@pytest.fixture
def world(in_world: Any) -> World:
    made: World = in_world(World())
    return made


def site(folder: Path, services: str, layout: str = LAYOUT) -> Path:
    """The site's folder."""
    return write_site(folder / "cluster", layout=layout, services=services)


def test_list(tmp_path: Path, capsys: Any, snapshot: SnapshotAssertion) -> None:
    folder = site(tmp_path, VALID + GROUPS)
    assert run(["vc", "list", "--site", str(folder)]) == ExitCode.OK
    assert capsys.readouterr().out == snapshot


def test_list_as_data(tmp_path: Path, capsys: Any) -> None:
    folder = site(tmp_path, VALID + GROUPS)
    assert run(["vc", "list", "--site", str(folder), "--format", "json"]) == ExitCode.OK
    report = json.loads(capsys.readouterr().out)
    jsonschema.validate(report, SCHEMAS["virtual-clusters"]())
    assert report["scheduler"] == "kueue"
    [quota, _] = report["virtual_clusters"][0]["quota"]
    assert (quota["sku"], quota["machines"], quota["guaranteed"]) == ("a100", 1, 8)
    assert (quota["lend"], quota["borrow"]) == (4, 16)
    assert [quota[key] for key in ("used", "lent", "borrowed")] == [None, None, None]
    assert report["virtual_clusters"][1]["quota"][0]["borrow"] is None


def test_what_is_missing_while_machines_are_absent(tmp_path: Path, capsys: Any) -> None:
    text = "scheduler: {type: kueue}\nvirtual-clusters: [{name: a, quota: [{sku: a100, machines: 3}]}]\n"
    assert run(["vc", "list", "--site", str(site(tmp_path, text, ABSENT))]) == ExitCode.OK
    assert "a100  2         16 devices  0       24          8 missing\n" in capsys.readouterr().out


def met(folder: Path) -> None:
    """Machines of the site were met once."""
    (folder / ".pai").mkdir()
    (folder / ".pai" / "known_hosts").touch()


def test_what_is_guaranteed_and_not_there_now(tmp_path: Path, capsys: Any, in_world: Any) -> None:
    folder = site(tmp_path, VALID + GROUPS)
    world = in_world(World(api=cluster_of()))
    words = ["vc", "list", "--site", str(folder)]
    assert run([*words, "--format", "json"]) == ExitCode.OK
    report = json.loads(capsys.readouterr().out)
    jsonschema.validate(report, SCHEMAS["virtual-clusters"]())
    assert (report["unmet"], world.api.calls) == (None, []), "nothing was installed yet"
    met(folder)
    assert run(words) == ExitCode.OK
    lack = "guaranteed, and not there now:\n  research and default lack, together, 8 a100: g2 is cordoned\n"
    assert lack in capsys.readouterr().out
    assert run([*words, "--format", "json"]) == ExitCode.OK
    report = json.loads(capsys.readouterr().out)
    jsonschema.validate(report, SCHEMAS["virtual-clusters"]())
    assert report["unmet"][0]["machines"] == [{"machine": "g2", "units": 8, "why": "is cordoned"}]


def test_a_cluster_that_does_not_answer_keeps_no_one_from_the_list(
    tmp_path: Path, capsys: Any, world: World, snapshot: SnapshotAssertion
) -> None:
    def refuse(*_: object) -> None:
        raise NoClusterError({"m1": "connection refused"})

    world.api.list = refuse  # type: ignore[method-assign,assignment]
    folder = site(tmp_path, VALID + GROUPS)
    met(folder)
    assert run(["vc", "list", "--site", str(folder)]) == ExitCode.OK
    said = capsys.readouterr()
    assert said.out.startswith("kept by kueue\n")
    assert said.err == snapshot


def test_hiveds_block_is_listed_with_its_cells(tmp_path: Path, capsys: Any, snapshot: SnapshotAssertion) -> None:
    folder = site(tmp_path, BLOCK)
    assert run(["vc", "list", "--site", str(folder)]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert shown.startswith("kept by hived\n")
    assert shown == snapshot
    assert run(["vc", "list", "--site", str(folder), "--format", "json"]) == ExitCode.OK
    report = json.loads(capsys.readouterr().out)
    jsonschema.validate(report, SCHEMAS["virtual-clusters"]())
    assert len(report["remarks"]) == 5
    assert report["not_kept"]


def test_a_site_without_virtual_clusters(tmp_path: Path, capsys: Any, world: World) -> None:
    del world
    folder = str(site(tmp_path, GROUPS))
    assert run(["vc", "list", "--site", folder]) == ExitCode.OK
    assert "no virtual clusters" in capsys.readouterr().out
    assert run(["vc", "list", "--site", folder, "--format", "json"]) == ExitCode.OK
    jsonschema.validate(json.loads(capsys.readouterr().out), SCHEMAS["virtual-clusters"]())
    assert run(["vc", "show", "--site", folder, "a"]) == ExitCode.USAGE
    assert run(["vc", "migrate", "--site", folder]) == ExitCode.USAGE


def test_show(tmp_path: Path, capsys: Any) -> None:
    folder = site(tmp_path, VALID + GROUPS)
    assert run(["vc", "show", "--site", str(folder), "research"]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert shown.startswith(
        "research: kept by kueue\n"
        "  groups: admins, Vision_1\n"
        "  namespaces: admins, vision-1\n"
        "  priorities: test where a job names none, up to prod\n"
        "  pinned machines: g3 (a100)\n"
    )
    assert "t4" not in shown
    assert run(["vc", "show", "--site", str(folder), "research", "--format", "json"]) == ExitCode.OK
    report = json.loads(capsys.readouterr().out)
    jsonschema.validate(report, SCHEMAS["virtual-cluster"]())
    assert report["pinned"] == [{"machine": "g3", "sku": "a100"}]
    assert run(["vc", "show", "--site", str(folder), "reserch"]) == ExitCode.USAGE
    assert "code: unknown-virtual-cluster" in capsys.readouterr().err


def test_a_site_with_errors_is_refused(tmp_path: Path) -> None:
    folder = str(site(tmp_path, VALID))
    assert run(["vc", "list", "--site", folder]) == ExitCode.SITE_INVALID
    assert run(["vc", "migrate", "--site", folder]) == ExitCode.SITE_INVALID


def test_migrate_prints_what_it_would_write(
    tmp_path: Path, capsys: Any, world: World, snapshot: SnapshotAssertion
) -> None:
    del world
    folder = site(tmp_path, BLOCK)
    assert run(["vc", "migrate", "--site", str(folder)]) == ExitCode.OK
    said = capsys.readouterr()
    made = yaml.safe_load(said.out)
    assert made["scheduler"] == {"type": "kueue"}
    assert [one["name"] for one in made["virtual-clusters"]] == ["default", "team"]
    assert said.err == snapshot
    assert (folder / SERVICES).read_text() == BLOCK


def test_migrate_there_and_back(tmp_path: Path, capsys: Any, world: World) -> None:
    del world
    text = f"# ours\n{QUICK_START}{GROUPS}"
    folder = site(tmp_path, text)
    before = migrated_of(load_site(folder).site)
    assert run(["vc", "migrate", "--site", str(folder), "--write"]) == ExitCode.OK
    written = (folder / SERVICES).read_text()
    assert written.startswith(text)
    after = migrated_of(load_site(folder).site)
    assert before is not None
    assert after is not None
    assert (after.backend, after.clusters) == ("kueue", before.clusters)
    assert "site.overruled" in {one.code for one in load_site(folder).problems}

    assert run(["vc", "migrate", "--site", str(folder), "--write"]) == ExitCode.OK
    assert "nothing to do" in capsys.readouterr().err
    assert run(["vc", "migrate", "--site", str(folder), "--to", "volcano", "--write"]) == ExitCode.OK
    assert (folder / SERVICES).read_text() == written.replace("type: kueue", "type: volcano")

    assert run(["vc", "migrate", "--site", str(folder), "--to", "hived", "--write"]) == ExitCode.OK
    back = (folder / SERVICES).read_text()
    assert back.startswith("# ours\nhivedscheduler:\n  config: |\n")
    assert "virtual-clusters:" not in back
    assert migrated_of(load_site(folder).site) == before
    assert run(["vc", "migrate", "--site", str(folder), "--to", "hived", "--write"]) == ExitCode.OK
    assert (folder / SERVICES).read_text() == back


def test_migrate_to_hived_keeps_who_may_submit(tmp_path: Path, capsys: Any, world: World) -> None:
    del world
    folder = site(tmp_path, VALID + GROUPS)
    assert run(["vc", "migrate", "--site", str(folder), "--to", "hived", "--write"]) == ExitCode.OK
    assert "research: its priorities" in capsys.readouterr().err
    written = yaml.safe_load((folder / SERVICES).read_text())
    groups = written["authentication"]["group-manager"]["grouplist"]
    assert groups[0]["extension"] == {"acls": {"virtualClusters": ["research"]}}
    assert "extension" not in groups[1]
    found = scheduling_of(load_site(folder).site)
    assert found is not None
    assert found.cluster("research").groups == ("admins", "Vision_1")
    assert found.pinned == {"g3": "research"}


def test_migrate_writes_nothing_that_would_say_something_else(tmp_path: Path, capsys: Any, world: World) -> None:
    del world
    folder = site(tmp_path, VALID + GROUPS)
    (folder / "config.yaml").write_text((folder / "config.yaml").read_text() + "enable_hived_scheduler: false\n")
    assert run(["vc", "migrate", "--site", str(folder), "--to", "hived", "--write"]) == ExitCode.PREFLIGHT_FAILED
    assert "virtual-clusters-not-editable" in capsys.readouterr().err
    assert (folder / SERVICES).read_text() == VALID + GROUPS


def cluster_of(*more: dict[str, Any]) -> FakeCluster:
    """The site's workers as nodes, of which g2 is cordoned."""
    offers = {"a100": "8", "t4": "4"}
    nodes = [
        {
            "kind": "Node",
            "metadata": {"name": name},
            "spec": {"unschedulable": True} if name == "g2" else {},
            "status": {
                "allocatable": {"nvidia.com/gpu": offers.get(sku, "0"), "cpu": "40"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        for name, sku in (("g1", "a100"), ("g2", "a100"), ("g3", "a100"), ("t1", "t4"), ("c1", "epyc"))
    ]
    return FakeCluster.of(*nodes, *more)


def test_usage(tmp_path: Path, capsys: Any, in_world: Any, snapshot: SnapshotAssertion) -> None:
    folder = str(site(tmp_path, VALID + GROUPS))
    scheduling = scheduling_of(load_site(Path(folder)).site)
    assert scheduling is not None
    flavors = [flavor_name(scheduling, "a100", owner) for owner in (None, scheduling.cluster("research"))]
    queue = cluster_queue("research", **{name: {"nvidia.com/gpu": "8"} for name in flavors})
    in_world(World(api=cluster_of(queue, workload("research", "waits", 2, admitted=False))))
    assert run(["vc", "usage", "--site", folder]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert shown == snapshot
    assert run(["vc", "usage", "default", "--site", folder, "--format", "json"]) == ExitCode.OK
    report = json.loads(capsys.readouterr().out)
    jsonschema.validate(report, SCHEMAS["virtual-clusters-usage"]())
    assert [one["name"] for one in report["virtual_clusters"]] == ["default"]


def test_usage_without_virtual_clusters_or_a_cluster(tmp_path: Path, capsys: Any, world: World) -> None:
    def refuse(*_: object) -> None:
        raise NoClusterError({"m1": "connection refused"})

    world.api.list = refuse  # type: ignore[method-assign,assignment]
    folder = str(site(tmp_path, VALID + GROUPS))
    assert run(["vc", "usage", "--site", folder]) == ExitCode.UNREACHABLE
    assert "code: no-control-plane-answers" in capsys.readouterr().err
    assert run(["vc", "usage", "reserch", "--site", folder]) == ExitCode.USAGE
    assert "code: unknown-virtual-cluster" in capsys.readouterr().err
    assert run(["vc", "usage", "--site", str(site(tmp_path, GROUPS))]) == ExitCode.USAGE
    assert "services-configuration.yaml" in capsys.readouterr().err


def test_plan(tmp_path: Path, capsys: Any, in_world: Any, snapshot: SnapshotAssertion) -> None:
    folder = site(tmp_path, VALID + GROUPS)
    before = scheduling_of(load_site(folder).site)
    assert before is not None
    flavor = flavor_name(before, "a100")
    queue = cluster_queue("research", **{flavor: {"nvidia.com/gpu": "8"}})
    api = cluster_of(kept_object(before), queue, workload("research", "train", 1, admitted=True))
    in_world(World(api=api))
    words = ["vc", "plan", "--site", str(folder)]
    assert run(words) == ExitCode.OK
    assert capsys.readouterr().out == snapshot

    text = "scheduler: {type: kueue}\nvirtual-clusters: [{name: default, quota: [{sku: a100, machines: 3}]}]\n"
    (folder / SERVICES).write_text(text + GROUPS)
    assert run(words) == ExitCode.OK
    shown = capsys.readouterr().out
    assert shown == snapshot
    assert run([*words, "--format", "json"]) == ExitCode.OK
    report = json.loads(capsys.readouterr().out)
    jsonschema.validate(report, SCHEMAS["virtual-clusters-plan"]())
    assert report["orphans"] == [{"virtual_cluster": "research", "job": "vision/train", "waits": False}]
    assert {method for method, _ in api.calls} == {"get", "list"}


def test_plan_of_the_first_virtual_clusters(
    tmp_path: Path, capsys: Any, world: World, snapshot: SnapshotAssertion
) -> None:
    folder = site(tmp_path, VALID + GROUPS)
    assert run(["vc", "plan", "--site", str(folder)]) == ExitCode.OK
    assert capsys.readouterr().out == snapshot
    assert [method for method, _ in world.api.calls] == ["get"]


JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: admins, labels: {kueue.x-k8s.io/queue-name: research}}
spec: {template: {spec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: 8}}}]}}}
"""


def test_simulate(tmp_path: Path, capsys: Any, in_world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = str(site(tmp_path, VALID + GROUPS))
    in_world(World(api=cluster_of()))
    job = tmp_path / "job.yaml"
    job.write_text(JOB)
    assert run(["vc", "simulate", str(job), "--site", folder]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert shown.startswith("admins/train (research, priority test): 1 pod\nfits the guarantee\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(JOB.encode())))
    words = ["vc", "simulate", "-", "--vc", "default", "--priority", "crit", "--site", folder, "--format", "json"]
    assert run(words) == ExitCode.OK
    report = json.loads(capsys.readouterr().out)
    jsonschema.validate(report, SCHEMAS["virtual-clusters-simulation"]())
    assert (report["job"]["virtual_cluster"], report["job"]["priority"]) == ("default", "crit")
    assert (report["outcome"], report["quota"][0]["requested"]) == ("fits", 8)


def test_simulate_refuses_what_is_no_job(tmp_path: Path, capsys: Any, world: World) -> None:
    del world
    folder, job = str(site(tmp_path, VALID + GROUPS)), tmp_path / "job.yaml"
    job.write_text("{apiVersion: apps/v1, kind: Deployment}")
    assert run(["vc", "simulate", str(job), "--site", folder]) == ExitCode.USAGE
    assert "code: job-not-simulated" in capsys.readouterr().err
    assert run(["vc", "simulate", str(job), "--vc", "reserch", "--site", folder]) == ExitCode.USAGE
    assert "code: unknown-virtual-cluster" in capsys.readouterr().err
