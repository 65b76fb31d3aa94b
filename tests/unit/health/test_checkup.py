"""A whole run: machines answer through an engine that replays, verdicts come out, the next run remembers."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from pai_install.checks.verdict import Verdict
from pai_install.cli.main import run
from pai_install.engine.base import Event, EventKind
from pai_install.errors import PaiError
from pai_install.health.act.pod import results, try_pods
from pai_install.health.checkup import HealthRequest, HealthRun
from pai_install.health.collect.collector import redact
from pai_install.health.collect.run import PLAYBOOK, CollectorOptions, collect, health_inventory
from pai_install.health.evidence import file as evidence_file
from pai_install.health.evidence.document import CommandResult
from pai_install.health.judge.expectation import expectations
from pai_install.health.memory.store import HealthStore
from pai_install.kube.model import Pod
from pai_install.site.load import load_site
from pai_install.site.model import Site
from tests.errors import raises
from tests.replay import ReplayEngine
from tests.unit.cluster.fake import FakeCluster

from .machines import NOW, Box, change, gpu_change, h100, healthy, uuid

LAYOUT = """
machine-sku:
  cpu: {mem: 8Gi, cpu: {vcore: 4}}
  dgx: {mem: 1000Gi, cpu: {vcore: 128}, computing-device: {type: nvidia.com/gpu, model: H100, count: 2}}
machine-list:
  - {hostname: master, hostip: 10.0.0.1, machine-type: cpu, pai-master: "true"}
  - {hostname: gpu-01, hostip: 10.0.0.2, machine-type: dgx, pai-worker: "true"}
  - {hostname: gpu-02, hostip: 10.0.0.3, machine-type: dgx, pai-worker: "true"}
"""
SICK = gpu_change("remapped_rows/remapped_row_failure", "Yes")
Document = dict[str, Any]


def document(box: Box, *, at: float = NOW) -> Document:
    """What the collector prints on such a machine."""
    evidence = box.evidence
    return {
        "schema_version": 1,
        "hostname": evidence.machine,
        "collected_at": at,
        "boot_id": evidence.boot_id,
        "uptime_s": evidence.uptime_s,
        "commands": {name: asdict(result) for name, result in evidence.commands.items()},
        "files": dict(evidence.files),
        "facts": {name: {"ok": True, "value": value} for name, value in evidence.facts.items()},
    }


def answer(host: str, text: Document) -> Event:
    packed = base64.b64encode(gzip.compress(json.dumps(text).encode())).decode()
    return Event(
        EventKind.OK, "Run the health collector", host=host, result={"stdout": packed, "stdout_lines": [packed]}
    )


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """One control plane and two GPU machines."""
    (tmp_path / "layout.yaml").write_text(LAYOUT)
    (tmp_path / "config.yaml").write_text("user: pai\npassword: planted-secret\n")
    return load_site(tmp_path).site


Make = Callable[..., tuple[HealthRun, ReplayEngine]]


@pytest.fixture
def checkup(site: Site) -> Make:
    """`checkup(events, cluster=...)` gives a check-up whose machines answer so, and the engine that was asked."""

    def make(*events: Event, cluster: FakeCluster | None = None) -> tuple[HealthRun, ReplayEngine]:
        engine = ReplayEngine({PLAYBOOK: (*events, Event(EventKind.DONE))})
        folder = site.directory / ".pai" / "health"
        door = cluster or FakeCluster()
        return HealthRun(site, folder, lambda: nullcontext(engine), lambda: door), engine

    return make


def test_machines_are_judged_by_what_the_site_says(checkup: Make) -> None:
    machines, engine = checkup(
        answer("gpu-01", document(healthy(2, "gpu-01"))),
        answer("gpu-02", document(SICK(healthy(2, "gpu-02")))),
        Event(EventKind.UNREACHABLE, host="master", result={"msg": "no route to host"}),
    )
    report = machines.run(HealthRequest())
    assert {machine.name: machine.verdict for machine in report.machines} == {
        "gpu-01": Verdict.PASS,
        "gpu-02": Verdict.FAIL,
    }
    assert dict(report.missed) == {"master": "no route to host"}
    (request,) = engine.requests
    assert set(request.limit) == {"master", "gpu-01", "gpu-02"}
    assert request.extra_vars["pai_health_options"] == ["--packed"]
    assert Path(request.extra_vars["pai_health_collector"]).name == "collector.py"


def test_layout_is_compared_with_the_machine(checkup: Make) -> None:
    machines, _ = checkup(answer("gpu-01", document(healthy(1, "gpu-01").gpus(h100()))))
    report = machines.run(HealthRequest(limit=("gpu-01",)))
    finding = next(item for item in report.findings if item.id == "gpu-count")
    assert (finding.verdict, finding.expected) == (Verdict.FAIL, "2 (layout)")


def test_a_worker_says_nothing_of_the_clusters_nodes(checkup: Make) -> None:
    """hostile-facts: it would drain another one, or hide that a node is gone."""
    lie = {"rc": 0, "stdout": 'gpu-02\t\t{"nvidia.com/gpu": "0"}\t{"nvidia.com/gpu": "0"}\tFalse\n'}
    liar = document(healthy(2, "gpu-01"))
    liar["commands"]["kubernetes_nodes"] = lie
    honest = document(healthy(2, "gpu-02"))
    machines, _ = checkup(answer("gpu-01", liar), answer("gpu-02", honest))
    without, _ = checkup(answer("gpu-01", document(healthy(2, "gpu-01"))), answer("gpu-02", honest))
    found = [item for item in machines.run(HealthRequest()).findings if item.subject == "gpu-02"]
    assert found == [item for item in without.run(HealthRequest()).findings if item.subject == "gpu-02"]


def test_limit_asks_only_those_and_refuses_strangers(checkup: Make) -> None:
    machines, engine = checkup(answer("gpu-01", document(healthy(2, "gpu-01"))))
    assert [machine.name for machine in machines.run(HealthRequest(limit=("gpu-01",))).machines] == ["gpu-01"]
    assert engine.requests[0].limit == ("gpu-01",)
    with raises("limit-unknown-machine"):
        machines.run(HealthRequest(limit=("nobody",)))


def test_unreadable_answers_and_silence_are_missed(checkup: Make) -> None:
    machines, _ = checkup(
        Event(EventKind.OK, host="gpu-01", result={"stdout": "python3: command not found"}),
        Event(EventKind.FAILED, host="gpu-02", result={"msg": "", "stderr": "sudo: a password is required"}),
    )
    missed = machines.run(HealthRequest()).missed
    assert "cannot read the output of the collector" in missed["gpu-01"]
    assert missed["gpu-02"] == "sudo: a password is required"
    assert missed["master"] == "no answer from the machine"


def test_the_next_run_sees_what_has_grown(checkup: Make, site: Site) -> None:
    first = healthy(2, "gpu-01")
    grown = first.gpus(change(h100(0), "pci/replay_counter", "900"), h100(1))
    checkup(answer("gpu-01", document(first)))[0].run(HealthRequest(limit=("gpu-01",)))
    later, _ = checkup(answer("gpu-01", document(grown, at=NOW + 600)))
    report = later.run(HealthRequest(limit=("gpu-01",)))
    assert next(item.verdict for item in report.findings if item.id == "gpu-pcie-replays") is Verdict.WARN
    store = HealthStore(site.directory / ".pai" / "health")
    assert [snapshot.warned for snapshot in store.history("gpu-01")][-1] == ("gpu-pcie-replays",)


def test_saved_evidence_is_judged_again_without_machines_and_without_memory(checkup: Make, site: Site) -> None:
    path = site.directory / "evidence.jsonl.gz"
    machines, engine = checkup(answer("gpu-02", document(SICK(healthy(2, "gpu-02")))))
    first = machines.run(HealthRequest(limit=("gpu-02",), save=path))
    again = machines.run(HealthRequest(source=path))
    assert len(engine.requests) == 1
    assert [item.verdict for item in again.of(Verdict.FAIL)] == [item.verdict for item in first.of(Verdict.FAIL)]
    assert len(HealthStore(site.directory / ".pai" / "health").history("gpu-02")) == 1
    with raises("evidence-missing-for-machines") as error:
        machines.run(HealthRequest(source=path, limit=("other",)))
    assert error.value.details == "it contains evidence of gpu-02"


def test_accepted_baseline_quiets_a_narrow_link(checkup: Make, site: Site) -> None:
    width = "pci/pci_gpu_link_info/link_widths/current_link_width"
    box = gpu_change(width, "8x")(healthy(2, "gpu-01")).paths(
        {"/sys/bus/pci/devices/0000:18:00.0/upstream/max_link_width": None}
    )
    machines, _ = checkup(answer("gpu-01", document(box)))
    request = HealthRequest(limit=("gpu-01",))
    assert [item.id for item in machines.run(request).of(Verdict.WARN)] == ["gpu-pcie-width"]
    accepted = machines.accept(request).baselines
    assert accepted["gpu-01"].gpus["0000:18:00.0"].pcie_width == 8
    assert accepted["gpu-01"].gpus["0000:18:00.0"].nvlinks == 18
    assert machines.run(request).of(Verdict.WARN) == []
    assert machines.baselines() == accepted


def test_machines_that_show_no_gpus_are_named_and_keep_their_baseline(checkup: Make) -> None:
    before, _ = checkup(*(answer(name, document(healthy(2, name))) for name in ("gpu-01", "gpu-02")))
    accepted = before.accept(HealthRequest(limit=("gpu-01", "gpu-02"))).baselines
    hung = healthy(2, "gpu-01").command("nvidia_smi_xml", CommandResult(timed_out=True))
    now, _ = checkup(
        answer("gpu-01", document(hung)), Event(EventKind.UNREACHABLE, host="gpu-02", result={"msg": "no route"})
    )
    again = now.accept(HealthRequest(limit=("gpu-01", "gpu-02")))
    assert dict(again.missed) == {"gpu-02": "no route", "gpu-01": "nvidia-smi named no GPU"}
    assert now.baselines() == accepted


def test_a_damaged_line_of_history_does_not_stop_a_run(checkup: Make, site: Site) -> None:
    folder = site.directory / ".pai" / "health" / "history"
    folder.mkdir(parents=True)
    (folder / "gpu-01.jsonl").write_text("{torn")
    machines, _ = checkup(answer("gpu-01", document(healthy(2, "gpu-01"))))
    assert machines.run(HealthRequest(limit=("gpu-01",))).machines[0].verdict is Verdict.PASS


def test_expectations_of_a_site(site: Site) -> None:
    found = expectations(site)
    assert found["gpu-01"].count == 2
    assert found["gpu-01"].model == "H100"
    assert found["gpu-01"].ram_bytes == 1000 * 2**30
    assert found["gpu-01"].nvidia
    assert not found["master"].nvidia
    assert found["master"].control_plane
    assert found["master"].device == ""


def test_mig_devices_of_a_sku_are_instances_to_be_counted(site: Site) -> None:
    skus = dict(site.skus)
    skus["dgx"] = skus["dgx"].model_copy(update={"resources": {"nvidia.com/mig-1g.10gb": 14}})
    found = expectations(site.model_copy(update={"skus": skus}))["gpu-01"]
    assert (found.count, found.mig, found.nvidia) == (None, 14, True)
    assert expectations(site)["gpu-01"].mig is None


def test_collector_options_become_arguments(site: Site) -> None:
    engine = ReplayEngine({PLAYBOOK: (Event(EventKind.DONE),)})
    collect(engine, health_inventory(site), ["gpu-01"], CollectorOptions(redact=True, deep_image="cuda:13"))
    assert engine.requests[0].extra_vars["pai_health_options"] == ["--packed", "--redact", "--deep-image", "cuda:13"]


def test_inventory_holds_connections_and_no_role_variables(site: Site) -> None:
    inventory = health_inventory(site)
    assert inventory.groups["control_plane"] == ("master",)
    assert set(inventory.host_vars["gpu-01"]) >= {"ansible_host", "ansible_user"}
    assert all(name.startswith("ansible_") for name in inventory.host_vars["gpu-01"])


# Cordoning


# A pod on each machine

LOGS = {"pai-health-gpu-01": f"GPU 0: H100 (UUID: {uuid(1)})"}


def pod_of(machine: str, phase: str, status: Document | None = None) -> Document:
    metadata = {"name": f"pai-health-{machine}", "namespace": "default"}
    labels = {"app": "pai-health-gpu", "pai-install/machine": machine}
    return {"kind": "Pod", "metadata": {**metadata, "labels": labels}, "status": {"phase": phase, **(status or {})}}


def ended(pod: Any) -> list[Document]:
    """What becomes of a pod: on gpu-01 it ends well, elsewhere it finds no GPU."""
    machine = pod["metadata"]["labels"]["pai-install/machine"]
    no_gpu = {"conditions": [{"type": "PodScheduled", "status": "False", "message": "Insufficient nvidia.com/gpu"}]}
    status = {"phase": "Succeeded"} if machine == "gpu-01" else {"phase": "Pending", **no_gpu}
    return [{**pod, "status": status}]


def test_pods_become_evidence() -> None:
    no_gpu = {"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes: Insufficient"}]}
    start = {"containerStatuses": [{"state": {"terminated": {"exitCode": 128, "reason": "StartError"}}}]}
    rows = [pod_of("gpu-01", "Succeeded"), pod_of("gpu-02", "Pending", no_gpu), pod_of("gpu-03", "Failed", start)]
    found = results(["gpu-01", "gpu-02", "gpu-03", "x"], list(map(Pod.parse, rows)), LOGS)
    assert (found["gpu-01"]["rc"], found["gpu-01"]["stdout"]) == (0, f"GPU 0: H100 (UUID: {uuid(1)})")
    assert (found["gpu-02"]["timed_out"], found["gpu-02"]["stderr"]) == (True, "0/3 nodes: Insufficient")
    assert (found["gpu-03"]["rc"], found["gpu-03"]["stderr"]) == (1, "StartError")
    assert found["x"]["stderr"] == "the pod was deleted"


def test_pods_are_made_and_removed_by_one_run() -> None:
    cluster = FakeCluster(makes=ended, logged=LOGS)
    devices = {"gpu-01": "nvidia.com/gpu", "gpu-02": "nvidia.com/gpu"}
    assert set(try_pods(cluster, devices, "cuda:13")) == set(devices)
    methods = [method for method, _ in cluster.calls]
    assert methods == ["delete_selected", "create", "wait", "list", "logs_of", "delete_selected"]
    assert cluster.objects == {}
    pod = cluster.calls[1][1][0]
    assert pod["spec"]["runtimeClassName"] == "nvidia"
    assert pod["spec"]["nodeSelector"] == {"kubernetes.io/hostname": "gpu-01"}
    assert pod["spec"]["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": "1"}}


def test_pods_are_removed_when_the_run_fails() -> None:
    cluster = FakeCluster.of(pod_of("old", "Running"))
    cluster.refuses = PaiError("no way")
    with pytest.raises(PaiError, match="no way"):
        try_pods(cluster, {"gpu-01": "nvidia.com/gpu"}, "cuda:13")
    assert [method for method, _ in cluster.calls] == ["delete_selected", "create", "delete_selected"]


def test_deep_run_tries_pods_where_there_is_a_cluster(checkup: Make) -> None:
    good = healthy(2, "gpu-01").output("kubernetes_nodes", "")
    machines, engine = checkup(answer("gpu-01", document(good)), cluster=FakeCluster(makes=ended, logged=LOGS))
    report = machines.run(HealthRequest(limit=("gpu-01",), deep_image="cuda:13"))
    finding = next(item for item in report.findings if item.id == "container-gpu-pod")
    assert finding.verdict is Verdict.PASS
    assert [request.playbook for request in engine.requests] == [PLAYBOOK]


def test_redacted_uuids_of_a_pod_are_those_of_the_machine(checkup: Make) -> None:
    evidence = redact(document(healthy(2, "gpu-01").output("kubernetes_nodes", "")))
    assert isinstance(evidence, dict)
    machines, _ = checkup(answer("gpu-01", evidence), cluster=FakeCluster(makes=ended, logged=LOGS))
    report = machines.run(HealthRequest(limit=("gpu-01",), deep_image="cuda:13", redact=True))
    finding = next(item for item in report.findings if item.id == "container-gpu-pod")
    assert finding.verdict is Verdict.PASS


def test_without_a_site_there_is_nothing_to_ask() -> None:
    empty = HealthRun()
    with raises("health-needs-site"):
        empty.run(HealthRequest())
    with raises("baseline-needs-site"):
        empty.accept(HealthRequest())


# The verb, over saved evidence


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Evidence of a healthy and a sick machine."""
    path = tmp_path / "evidence.jsonl"
    boxes = [healthy(2, "gpu-01"), SICK(healthy(2, "gpu-02"))]
    evidence_file.save(path, [(box.evidence.machine, document(box)) for box in boxes])
    return path


def test_verb_exits_with_7_for_a_fail(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = str(saved.parent)
    assert run(["health", "--site", empty, "--from", str(saved)]) == 7
    assert "[gpu-remap-failed]" in capsys.readouterr().out
    assert run(["health", "--site", empty, "--from", str(saved), "--limit", "gpu-01"]) == 0


def test_verb_names_what_a_file_does_not_hold(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["health", "--site", str(saved.parent), "--from"]
    assert run([*words, str(saved), "--limit", "gpu-03"]) == 2
    assert "gpu-03" in capsys.readouterr().err
    (saved.parent / "empty").write_text("\n")
    assert run([*words, str(saved.parent / "empty")]) == 2
    assert "code: evidence-missing-for-machines" in capsys.readouterr().err


def test_verb_acts_on_no_saved_evidence(saved: Path, site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["health", "--site", str(site.directory), "--from", str(saved), "--act", "cordon"]) == 2
    assert "saved evidence" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("form", "start"),
    [("json", "{"), ("html", "<!doctype html>"), ("junit", "<?xml"), ("prometheus", "# HELP"), ("table", "MACHINE")],
)
def test_verb_has_every_form(saved: Path, form: str, start: str) -> None:
    out = saved.parent / "report"
    assert run(["health", "--site", str(saved.parent), "--from", str(saved), "--format", form, "--out", str(out)]) == 7
    assert out.read_text().startswith(start)


def test_a_page_links_what_it_wrote_beside_it(saved: Path, tmp_path: Path) -> None:
    page, raw = tmp_path / "h.html", tmp_path / "raw"
    words = ["health", "--site", str(saved.parent), "--from", str(saved), "--format", "html"]
    assert run([*words, "--out", str(page), "--raw", str(raw)]) == 7
    assert sorted(path.name for path in raw.iterdir() if path.suffix == ".txt") == ["gpu-01.txt", "gpu-02.txt"]
    assert '"gpu-01":"raw/gpu-01.txt"' in page.read_text()
    assert "$ nvidia_smi_xml: ended with 0" in (raw / "gpu-01.txt").read_text()


def test_verb_takes_the_site_of_a_subcommand(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    store = HealthStore(site.directory / ".pai" / "health")
    snapshot = healthy(2, "gpu-01").log("x kernel: NVRM: Xid (PCI:0000:18:00): 79, gone").report().snapshot
    assert snapshot
    store.remember({"gpu-01": snapshot})
    assert run(["health", "history", "--site", str(site.directory), "gpu-01"]) == 0
    shown = capsys.readouterr().out
    assert "FAIL gpu-xid" in shown
    assert "Xid 79" in shown
    assert run(["health", "--site", str(site.directory), "--format", "json", "history", "gpu-01"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["failed"] == ["gpu-xid"]
    assert run(["health", "history", "--site", str(site.directory), "gpu-02"]) == 2


def test_verb_watch_shows_changes_and_ends(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["health", "--site", str(saved.parent), "--from", str(saved), "watch", "--runs", "1"]) == 7
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1
    assert "FAIL gpu-02 0000:18:00.0 gpu-remap-failed" in lines[0]


def test_verb_takes_limit_and_evidence_after_the_subcommand(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["health", "watch", "--site", str(saved.parent), "--from", str(saved), "--runs", "1"]
    assert run([*words, "--limit", "gpu-01"]) == 0
    assert run([*words, "--limit", "gpu-02"]) == 7
    assert "gpu-02" in capsys.readouterr().out
    assert run([*words, "--limit", "gpu-03"]) == 2


@pytest.mark.parametrize("option", [["--act", "cordon"], ["--format", "json"], ["--out", "x"], ["--all"]])
def test_verb_watch_refuses_what_it_would_ignore(
    saved: Path, option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--site", str(saved.parent), "--from", str(saved)]
    assert run(["health", *words, *option, "watch", "--runs", "1"]) == 2
    assert f"cannot run health watch with {option[0]}" in capsys.readouterr().err


def test_verb_baseline_is_taken_from_evidence_of_one_machine(
    saved: Path, site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["health", "baseline", "--site", str(site.directory), "--accept", "--from", str(saved)]
    assert run([*words, "--limit", "gpu-01"]) == 0
    shown = capsys.readouterr().out
    assert "gpu-01" in shown
    assert "gpu-02" not in shown


def test_verb_explains_with_the_numbers_of_the_site(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    (site.directory / "health.yml").write_text("skus: {dgx: {nvlink-count: 12}}\n")
    assert run(["health", "explain", "--site", str(site.directory), "nvlink-links"]) == 0
    assert "nvlink-count = 12 for SKU dgx" in capsys.readouterr().out
    assert run(["health", "explain", "xid-79"]) == 0
    assert "fallen off the bus" in capsys.readouterr().out


def test_verb_explains_an_error_of_a_switch(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["health", "explain", "sxid-12020"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("SXid 12020: egress sequence ID error\nverdict:    FAIL")
    assert "nvswitch-sxid" in out
    assert run(["health", "explain", "sxid-1"]) == 2
    assert "not in the catalogue" in capsys.readouterr().err


def test_verb_explain_and_rules(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["health", "explain", "gpu-xid"]) == 0
    assert "xid-window-hours = 24" in capsys.readouterr().out
    assert run(["health", "explain"]) == 0
    assert run(["health", "explain", "gpu-xxx"]) == 2
    assert run(["health", "alert-rules", "--out", str(tmp_path / "rules.yml")]) == 0
    assert "NodeGpuCountChanged" in (tmp_path / "rules.yml").read_text()


def test_verb_baseline_shows_what_was_accepted(site: Site, checkup: Make, capsys: pytest.CaptureFixture[str]) -> None:
    machines, _ = checkup(answer("gpu-01", document(healthy(2, "gpu-01"))))
    machines.accept(HealthRequest(limit=("gpu-01",)))
    assert run(["health", "baseline", "--site", str(site.directory)]) == 0
    assert "gpu-01 0000:18:00.0: PCIe x16 gen 5, 81500 MiB, NVLinks 18" in capsys.readouterr().out


def test_verb_without_site_or_evidence_is_a_usage_error(tmp_path: Path) -> None:
    assert run(["health", "--site", str(tmp_path)]) == 3
    assert run(["health", "--site", str(tmp_path), "--from", str(tmp_path / "missing")]) == 2
