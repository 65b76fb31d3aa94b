"""The parts of `make bench`, on small inputs; no test looks at a time."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any

import pytest

from pai_install.plan.phases import PHASE_NAMES, PHASES
from pai_install.site import load_site
from tests.perf import bench as bench_module
from tests.perf.bench import bench, cluster
from tests.perf.big_site import inventory_of, plan, results, write_site
from tests.perf.budgets import Measure
from tests.perf.code_size import STANDALONE, code_size
from tests.perf.lab_runs import OPTIONAL_PHASES, install_measures, join_measures, last_install, no_op_measures
from tests.perf.process import Cost, cost_of, this_machine
from tests.perf.registry_bench import large_image


def counts(tasks: int, changed: int = 0) -> dict[str, int]:
    """Of one machine in a report."""
    return {"ok": tasks, "changed": changed, "failed": 0, "unreachable": 0, "skipped": 0, "tasks": tasks}


def report(
    hosts: dict[str, dict[str, int]], *, ok: bool = True, phases: tuple[str, ...] = PHASE_NAMES
) -> dict[str, Any]:
    """A run of some phases on some machines."""
    done = [{"name": name, "duration_s": 1.6, "hosts": {host: {} for host in hosts}} for name in phases]
    return {"ok": ok, "duration_s": 100.5, "hosts": hosts, "phases": done}


def keep(folder: Path, name: str, content: dict[str, Any]) -> None:
    """Writes a report as a run does."""
    path = folder / ".pai" / "runs" / name / "report.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(content))
    (path.parent / "ansible.log").write_text("TASK [a] ***\nok: [node-0003]\n")


def values(measures: list[Measure]) -> dict[str, float]:
    """Name -> value."""
    return {measure.name: measure.value for measure in measures}


@pytest.fixture
def site_dir(tmp_path: Path) -> Path:
    """A site of 5 machines."""
    write_site(tmp_path, 5)
    return tmp_path


class TestBigSite:
    """The synthetic site."""

    def test_is_valid(self, site_dir: Path) -> None:
        loaded = load_site(site_dir)
        assert [machine.hostname for machine in loaded.site.control_planes] == ["node-0000", "node-0001", "node-0002"]
        assert [machine.hostname for machine in loaded.site.workers] == ["node-0003", "node-0004"]

    def test_addresses_stay_apart_beyond_one_network(self, tmp_path: Path) -> None:
        write_site(tmp_path, 260)
        assert len({machine.hostip for machine in load_site(tmp_path).site.machines}) == 260

    def test_is_planned_new_and_as_it_should_be(self, site_dir: Path) -> None:
        found = plan(site_dir)
        assert found["steps_when_converged"] == 0
        assert found["steps_elsewhere_for_one_more"] == 0
        assert found["machines_asked_for_one_more"] == 3, "the control planes"
        everywhere = {"base": 5, "time": 5, "runtime": 5}
        expected = {
            **everywhere,
            "storage": 0,  # nor any storage
            "components": 1,
            "control-plane": 3,
            "network": 1,
            "workers": 2,
            "labels": 2,
            "addons": 1,
            "registries": 0,  # the site names none: no machine pays a task
        }
        assert set(expected) == {phase.name for phase in PHASES}
        assert {name for name, steps in expected.items() if not steps} == OPTIONAL_PHASES
        assert found["steps"] == sum(expected.values())
        assert found["inventory_bytes"] > 10_000
        assert found["plan_bytes"] > 1000

    def test_every_machine_answers(self, site_dir: Path) -> None:
        site = load_site(site_dir).site
        answers = dict(results(inventory_of(site)))
        assert list(answers) == [machine.hostname for machine in site.machines]
        assert "worker" in answers["node-0004"]["ansible_facts"]["pai"]["roles"]


class TestCodeSize:
    """Lines of modules and functions."""

    def test_counts(self, tmp_path: Path) -> None:
        package = tmp_path / "installer" / "pai_install"
        (package / "health" / "collect").mkdir(parents=True)
        (tmp_path / "playbooks").mkdir()
        (tmp_path / "tests").mkdir()
        (package / "__init__.py").write_text("")
        (package / "one.py").write_text("def a():\n    return 1\n\n\n")
        (package / "two.py").write_text("def b():\n    x = 1\n    y = 2\n    return x + y\n\n\n")
        (package / STANDALONE).write_text("pass\n" * 500)
        (tmp_path / "playbooks" / "module.py").write_text("pass\n" * 10)
        (tmp_path / "tests" / "test_one.py").write_text("pass\n" * 260)
        assert values(code_size(tmp_path)) == {
            "module_lines_median": 5,
            "module_lines_longest": 6,
            "function_lines_median": 3,
            "function_lines_longest": 4,
            "test_to_source_lines": 0.5,
        }

    def test_of_this_tree_names_the_longest(self) -> None:
        notes = {measure.name: measure.note for measure in code_size()}
        assert notes["module_lines_longest"].endswith(".py")
        assert ".py:" in notes["function_lines_longest"]


class TestRuns:
    """What reports say."""

    def test_the_newest_full_success_counts(self, tmp_path: Path) -> None:
        keep(tmp_path, "20260101T000000Z", report({"a": counts(9)}))
        keep(tmp_path, "20260102T000000Z", report({"a": counts(8)}))
        keep(tmp_path, "20260103T000000Z", report({"a": counts(7)}, ok=False))
        keep(tmp_path, "20260104T000000Z", report({"a": counts(6)}, phases=("observe", "verify")))
        found = last_install(tmp_path / ".pai" / "runs")
        assert found is not None
        assert found[0] == "20260102T000000Z"

    def test_no_runs_is_no_install(self, tmp_path: Path) -> None:
        assert last_install(tmp_path / "nothing") is None

    def test_site_without_storage_and_registries_has_an_installation(self, tmp_path: Path) -> None:
        phases = tuple(name for name in PHASE_NAMES if name not in ("storage", "registries"))
        keep(tmp_path, "20260101T000000Z", report({"a": counts(1)}, phases=phases))
        found = last_install(tmp_path / ".pai" / "runs")
        assert found is not None
        assert found[0] == "20260101T000000Z"

    def test_install_tells_workers_and_control_planes_apart(self, site_dir: Path) -> None:
        hosts = {"node-0000": counts(50, 9), "node-0003": counts(30), "node-0004": counts(31, 2)}
        tasks = {"node-0000": 40, "node-0003": 20, "node-0004": 21}
        measures = install_measures(load_site(site_dir).site, "R", report(hosts), tasks)
        assert values(measures) == {
            "lab_install_wall": 100.5,
            "lab_install_tasks_on_worker": 21,
            "lab_install_tasks_per_worker": 31,
            "lab_install_changed_per_worker": 2,
            "lab_install_skipped_per_worker": 0,
            "lab_install_tasks_per_control_plane": 50,
            "lab_install_changed_per_control_plane": 9,
            "lab_install_skipped_per_control_plane": 0,
        }
        assert measures[0].note.startswith("run R, 11 tasks changed: base 2 s")

    def test_no_op_counts_the_busiest_machine_and_all_changes(self) -> None:
        measures = no_op_measures(7.5, 1.5, report({"a": counts(1), "b": counts(4, 1), "c": counts(2, 2)}))
        assert values(measures) == {
            "lab_no_op_wall": 7.5,
            "lab_no_op_cpu": 1.5,
            "lab_no_op_tasks_per_machine": 4,
            "lab_no_op_changed": 3,
        }

    def test_join_counts_what_it_does_to_the_others(self) -> None:
        phases = [
            {"name": "base", "hosts": [{"host": "new"}, {"host": "a"}]},
            {"name": "verify", "hosts": [{"host": "b"}]},
        ]
        measures = join_measures(
            40.0,
            {"phases": phases},
            report({"a": counts(9, 2), "b": counts(3), "new": counts(50, 30)}),
            "new",
            {"a": 7, "b": 1, "new": 31},
        )
        assert values(measures) == {
            "lab_join_wall": 40.0,
            "lab_join_tasks": 31,
            "lab_join_steps_elsewhere": 1,
            "lab_join_changed_elsewhere": 2,
            "lab_join_tasks_elsewhere": 8,
        }
        assert measures[-1].note == "7 on a, 1 on b"


class TestCluster:
    """The part that needs a cluster, with an `apply` that is none."""

    def test_reads_the_install_and_measures_an_apply(self, site_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        keep(site_dir, "20260101T000000Z", report({"node-0003": counts(30)}))
        ran: list[list[str]] = []

        def fake(argv: list[str]) -> Cost:
            ran.append(argv)
            return Cost(5.0, 1.0, 90.0, json.dumps(report({"node-0003": counts(1)})))

        monkeypatch.setattr(bench_module, "cost_of", fake)
        measures, skipped = cluster(site_dir)
        assert skipped == {}
        assert values(measures)["lab_no_op_wall"] == 5.0
        assert values(measures)["lab_install_tasks_per_worker"] == 30
        assert values(measures)["lab_install_tasks_on_worker"] == 1
        assert values(measures)["lab_status_cpu"] == 1.0
        assert ran[0][3:] == ["apply", "--site", str(site_dir), "--yes", "--format", "json"]

    def test_a_failing_apply_is_named(self, site_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def fake(argv: list[str]) -> Cost:
            raise CalledProcessError(5, argv)

        monkeypatch.setattr(bench_module, "cost_of", fake)
        assert cluster(site_dir) == (
            [],
            {"lab_install": "no report of a successful run of all phases", "lab_no_op": "apply ended with 5"},
        )


def test_a_part_that_fails_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> list[Measure]:
        raise OSError("no")

    def refused() -> Any:
        raise OSError("the lab needs root")

    monkeypatch.setattr(bench_module, "help_time", broken)
    monkeypatch.setattr(bench_module, "big_site", lambda: [Measure("plan_1000_wall", 1)])
    monkeypatch.setattr(bench_module, "many_machines", list)
    monkeypatch.setattr(bench_module, "health", dict)
    monkeypatch.setattr(bench_module, "own_lab", refused)
    found = bench(None)
    assert found["skipped"] == {"help": "OSError: no", "cluster": "OSError: the lab needs root"}
    measures = found["measures"]
    assert isinstance(measures, list)
    assert {"plan_1000_wall", "module_lines_median"} <= {entry["name"] for entry in measures}


def test_large_image_is_one_that_a_registry_takes(tmp_path: Path) -> None:
    layout = large_image(tmp_path, mib=1)
    blobs = {path.name: path.read_bytes() for path in (layout / "blobs" / "sha256").iterdir()}
    assert {name: hashlib.sha256(content).hexdigest() for name, content in blobs.items()} == {
        name: name for name in blobs
    }
    (entry,) = json.loads((layout / "index.json").read_text())["manifests"]
    manifest = json.loads(blobs[entry["digest"].removeprefix("sha256:")])
    (layer,) = manifest["layers"]
    assert len(blobs[layer["digest"].removeprefix("sha256:")]) == layer["size"] > 2**20
    assert manifest["config"]["digest"].removeprefix("sha256:") in blobs


def test_a_process_is_measured_with_its_output() -> None:
    cost = cost_of([sys.executable, "-c", "x = b'1' * 2**27; print('done')"])
    assert cost.output == "done\n"
    assert cost.memory_mib > 128
    assert cost.wall_s > 0


def test_a_failing_process_is_an_error_with_its_status() -> None:
    with pytest.raises(CalledProcessError) as caught:
        cost_of([sys.executable, "-c", "raise SystemExit(3)"])
    assert caught.value.returncode == 3


def test_the_machine_is_described() -> None:
    found = this_machine()
    assert found["cores"] >= 1
    assert found["memory_mib"] > 0
    assert isinstance(found["busy"], bool)
