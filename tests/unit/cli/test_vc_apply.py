"""`pai-install vc apply` from argv to exit code, on a cluster in memory whose scheduler takes not everything."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import jsonschema  # type: ignore[import-untyped]
import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.cli.schema import SCHEMAS
from pai_install.cluster.client import Patch
from pai_install.engine.base import Event, RunRequest
from pai_install.errors import ExitCode
from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject
from pai_install.plan.model import HostStep, Plan, Playbook, Step
from pai_install.run.state import state_of
from pai_install.run.verification_state import Proof, VerificationGap, read_proof, write_proof
from pai_install.run.virtual_clusters import read_good, write_good
from pai_install.schedulers.compile import labels_of, objects_of
from pai_install.schedulers.last_applied import KEPT, KEPT_IN, kept_of
from pai_install.schedulers.rollback import restored
from pai_install.scheduling.model import Scheduling
from pai_install.scheduling.read import scheduling_of
from pai_install.site.load import SERVICES, load_site
from tests.unit.cli.stub_environment import World, run
from tests.unit.cluster.fake import FakeCluster, ref_of
from tests.unit.runs import ScriptedEngine, done, event
from tests.unit.scheduling.usage.objects import workload

LAYOUT = """\
machine-sku:
  cpu: {mem: 8Gi, cpu: {vcore: 4}}
  gpu: {mem: 8Gi, cpu: {vcore: 4}, computing-device: {type: nvidia.com/gpu, model: A100, count: 8}}
machine-list:
  - {hostname: master, hostip: 10.0.0.1, machine-type: cpu, pai-master: "true"}
  - {hostname: one, hostip: 10.0.0.2, machine-type: gpu, pai-worker: "true"}
  - {hostname: two, hostip: 10.0.0.3, machine-type: gpu, pai-worker: "true"}
"""
GROUPS = "authentication: {group-manager: {grouplist: [{groupname: vision}, {groupname: nlp}]}}\n"


def services(research: int, product: int = 0, rest: str = "") -> str:
    """Devices of each; the second is not there without."""
    entries = [f"{{name: research, quota: [{{sku: gpu, devices: {research}}}]{rest}}}"]
    entries += [f"{{name: product, quota: [{{sku: gpu, devices: {product}}}]}}"] if product else []
    return f"scheduler: {{type: kueue}}\nvirtual-clusters: [{', '.join(entries)}]\n{GROUPS}"


@dataclass
class Kueue(FakeCluster):
    """Its queues become active but those with an amount in `dislikes`; one in `refuses` is not even taken."""

    dislikes: set[str] = field(default_factory=set)
    forbids: set[str] = field(default_factory=set)

    def apply(self, objects: Sequence[JsonObject], *, force: bool = False) -> tuple[JsonObject, ...]:
        applied = super().apply(objects, force=force)
        for item in objects:
            if item["kind"] in ("ClusterQueue", "LocalQueue"):
                self.judge(item)
            if item["kind"] == "ResourceQuota":
                # its controller repeats what it counts
                ref = Ref("resourcequota", item["metadata"]["name"], item["metadata"]["namespace"])
                self.objects[ref] = {**self.objects[ref], "status": {"hard": item["spec"]["hard"]}}
        return applied

    def judge(self, item: JsonObject) -> None:
        """Writes the condition of a queue."""
        bad = self.dislikes & _amounts(item)
        active = {"type": "Active", "status": str(not bad), "message": "a flavor is missing" if bad else ""}
        metadata = item["metadata"]
        ref = Ref(item["kind"].lower(), metadata["name"], metadata.get("namespace", ""))
        self.objects[ref] = {
            **self.objects[ref],
            "status": {**self.objects[ref].get("status", {}), "conditions": [active]},
        }


def _amounts(item: JsonObject) -> set[str]:
    groups = item["spec"].get("resourceGroups", ())
    flavors = [flavor for group in groups for flavor in group["flavors"]]
    return {row["nominalQuota"] for flavor in flavors for row in flavor["resources"]}


@dataclass
class Machines(ScriptedEngine):
    """Brings the add-on as module pai_addons does: object by object, and takes away at the end what is not wanted."""

    script: Mapping[str, Sequence[Event | BaseException]] = field(default_factory=dict)
    site: Path = Path()
    api: Kueue = field(default_factory=Kueue)
    dies: bool = False

    def run(self, request: RunRequest) -> Generator[Event]:
        """Plays the playbook."""
        self.requests.append(request)
        match request.playbook:
            case "addons.yml" | "labels.yml" if request.check:
                yield from done(*(event("ok", name, "Look") for name in request.limit))
            case "addons.yml":
                yield from self.addons()
            case "labels.yml":
                for name, labels in labels_of(self.wanted()).items():
                    self.api.patch([Patch(Ref("node", name), {"metadata": {"labels": labels}})])
                yield from done(event("changed", "one", "Label"), event("changed", "two", "Label"))
            case "verify.yml":
                yield from done(*(event("ok", name, "Verify") for name in request.limit))
            case other:
                yield from (it for it in self.script[other] if isinstance(it, Event))

    def addons(self) -> list[Event]:
        """What pai_addons does."""
        wanted = self.wanted()
        for item in restored(wanted):
            if item["kind"] == "ClusterQueue" and self.api.forbids & _amounts(item):
                return done(event("failed", "master", "Apply", msg="virtual_clusters: denied"), failures=["master"])
            self.api.apply([item])
            if self.dies:
                raise KeyboardInterrupt
        kept = {ref_of(item) for item in objects_of(wanted)}
        for ref in [ref for ref in self.api.objects if self.is_ours(ref) and ref not in kept]:
            del self.api.objects[ref]
        return done(event("changed", "master", "Apply the add-ons"))

    def wanted(self) -> Scheduling:
        """What the site says."""
        return divided(self.site)

    def settled(self) -> bool:
        """Whether the cluster has just that."""
        wanted = {ref_of(item) for item in objects_of(self.wanted())}
        return self.kept() == self.wanted() and set(filter(self.is_ours, self.api.objects)) == wanted

    def is_ours(self, ref: Ref) -> bool:
        """Whether the add-on has made an object."""
        return "pai-install/addon" in self.api.objects[ref]["metadata"].get("labels", {})

    def kept(self) -> Scheduling | None:
        """What the cluster was given last."""
        return kept_of(self.api.objects.get(Ref("configmap", KEPT, KEPT_IN)))

    def queues(self) -> dict[str, set[str]]:
        """Queue -> the amounts that it has."""
        return {ref.name: _amounts(it) for ref, it in self.api.objects.items() if ref.kind == "clusterqueue"}

    def plan(self, *_words: Any, **_more: Any) -> Plan:
        """Stands in for the planner."""
        labels = Step(
            "labels", "Label", (HostStep("one", ("changed",)), HostStep("two", ("changed",))), Playbook("labels.yml")
        )
        addons = Step("addons", "Apply the add-ons", (HostStep("master", ("changed",)),), Playbook("addons.yml"))
        return Plan(() if self.settled() else (labels, addons), World().settings(), {}, "master")

    def work(self, *_words: Any) -> dict[str, list[str]]:
        """Stands in for the planner's look at records."""
        return {} if self.settled() else {"virtual_clusters": ["settings changed: objects"]}


def divided(folder: Path) -> Scheduling:
    """What the site's files say."""
    scheduling = scheduling_of(load_site(folder).site)
    assert scheduling is not None
    return scheduling


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "cluster"
    folder.mkdir()
    (folder / "layout.yaml").write_text(LAYOUT)
    (folder / "config.yaml").write_text("user: admin\npassword: hunter22-planted\n")
    (folder / SERVICES).write_text(services(8, 8))
    return folder


@pytest.fixture
def world(in_world: Any) -> World:
    api = Kueue()
    for name in ("one", "two"):
        api.objects[Ref("node", name)] = {"kind": "Node", "metadata": {"name": name, "labels": {}}, "spec": {}}
    made: World = in_world(World(api=api))
    return made


@pytest.fixture
def machines(site: Path, world: World, monkeypatch: pytest.MonkeyPatch) -> Machines:
    """The site's virtual clusters are there, and so are its nodes."""
    api = cast("Kueue", world.api)
    made = Machines(script=world.script, site=site, api=api)
    world.ansible = made
    made.addons()
    list(made.run(RunRequest("labels.yml", World().settings(), ("one", "two"))))
    made.requests.clear()
    monkeypatch.setattr("pai_install.operations.vc_apply.make_plan", made.plan)
    monkeypatch.setattr("pai_install.operations.vc_apply._work", made.work)
    return made


def vc_apply(site: Path, *words: str) -> int:
    return run(["vc", "apply", "--site", str(site), "--yes", *words])


def notify(site: Path, text: str) -> None:
    (site / SERVICES).write_text(text)


def note(site: Path) -> Scheduling | None:
    return read_good(state_of(site).virtual_clusters)


def played(machines: Machines) -> list[str]:
    """The playbooks that ran."""
    return [request.playbook for request in machines.requests if request.playbook != "observe.yml"]


def test_what_changes_is_said_first_then_done_and_asked(
    site: Path, machines: Machines, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    notify(site, services(4, 12))
    assert vc_apply(site) == ExitCode.OK
    shown = capsys.readouterr().out
    assert shown.startswith(
        "research: gpu shrinks from 8 to 4\nproduct: gpu grows from 8 to 12\n\njobs:\n  none is touched\n"
    )
    assert played(machines) == ["labels.yml", "addons.yml"], "no machine itself has changed"
    assert read_proof(state_of(site).proof).unproven == {}
    assert machines.requests[2].extra_vars["cluster_addons_only"] == ["virtual_clusters"]
    assert machines.kept() == divided(site)
    assert "has taken" in state_of(site).reports()[1].read_text()
    assert note(site) is None
    capsys.readouterr()
    machines.requests.clear()
    assert vc_apply(site) == ExitCode.OK
    assert capsys.readouterr().out == snapshot
    assert played(machines) == []


def test_machines_that_an_earlier_run_left_unverified_stay_so(site: Path, machines: Machines, capsys: Any) -> None:
    """The proof of a quota shows nothing of an interrupted installation, and nobody waits for a whole one."""
    left = {"master": VerificationGap(why="a run was interrupted", operation="apply")}
    write_proof(state_of(site).proof, Proof(unproven=left))
    notify(site, services(4, 12))
    assert vc_apply(site) == ExitCode.OK
    assert played(machines) == ["labels.yml", "addons.yml"]
    assert read_proof(state_of(site).proof).unproven == left
    assert "not verified since an earlier run: master" in capsys.readouterr().err


def sessions(world: World) -> int:
    """How often Ansible was opened."""
    return sum("accept_new" in entry for entry in world.asked)


def observations(machines: Machines) -> int:
    return sum(request.playbook == "observe.yml" for request in machines.requests)


@pytest.mark.parametrize("dislikes", [set(), {"12"}])
def test_one_session_serves_all_runs_of_the_command(
    site: Path, machines: Machines, world: World, dislikes: set[str]
) -> None:
    """Change and verification, or change and rollback."""
    machines.api.dislikes = dislikes
    notify(site, services(4, 12))
    assert vc_apply(site) == (ExitCode.VERIFICATION_FAILED if dislikes else ExitCode.OK)
    assert sessions(world) == 1
    assert observations(machines) == 1


def test_check_only_shows(site: Path, machines: Machines, capsys: Any, snapshot: SnapshotAssertion) -> None:
    notify(site, services(16))
    machines.api.objects |= {Ref("workload", "w", "vision"): workload("product", "train", 1, admitted=True)}
    before = dict(machines.api.objects)
    assert run(["vc", "apply", "--site", str(site), "--check"]) == ExitCode.OK
    assert capsys.readouterr().out == snapshot
    assert [request.playbook for request in machines.requests if request.check] == ["labels.yml", "addons.yml"]
    assert note(site) is None
    assert before == machines.api.objects


def test_one_document_with_a_report_for_each_run(site: Path, machines: Machines, capsys: Any) -> None:
    machines.api.dislikes = {"4"}
    notify(site, services(4, 12))
    assert vc_apply(site, "--format", "json") == ExitCode.VERIFICATION_FAILED
    said = capsys.readouterr()
    report = json.loads(said.out)
    jsonschema.validate(report, SCHEMAS["runs"]())
    assert (report["exit_code"], len(report["runs"])) == (7, 2)
    assert "research: gpu shrinks" in said.err


def test_a_virtual_cluster_with_jobs_goes_only_by_force(site: Path, machines: Machines, capsys: Any) -> None:
    machines.api.objects |= {Ref("workload", "w", "vision"): workload("product", "train", 1, admitted=True)}
    notify(site, services(16))
    assert vc_apply(site) == ExitCode.PREFLIGHT_FAILED
    error = capsys.readouterr().err
    assert "virtual-cluster-has-jobs" in error
    assert "vision/train" in error
    assert played(machines) == []
    assert vc_apply(site, "--force") == ExitCode.OK
    assert "product" not in machines.queues()


def test_a_group_that_may_submit_no_longer_keeps_its_queue_while_it_has_jobs(
    site: Path, machines: Machines, capsys: Any
) -> None:
    machines.api.objects |= {Ref("workload", "w", "vision"): workload("research", "train", 1, admitted=True)}
    notify(site, services(8, 8, ", groups: [nlp]"))
    assert vc_apply(site) == ExitCode.PREFLIGHT_FAILED
    assert "vision/train" in capsys.readouterr().err
    notify(site, services(8, 8, ", groups: [vision]"))
    assert vc_apply(site) == ExitCode.OK


@pytest.mark.parametrize("how", ["dislikes", "forbids"])
def test_what_is_not_taken_is_taken_back(site: Path, machines: Machines, capsys: Any, how: str) -> None:
    """Inactive queues, and what admission refuses in the middle of it: also labels of machines, and what was new."""
    good, queues = divided(site), machines.queues()
    getattr(machines.api, how).add("12")
    notify(site, services(4, 12, ", pinned: []").replace("kueue}", "kueue, topology: []}"))
    code = vc_apply(site)
    assert code == (ExitCode.VERIFICATION_FAILED if how == "dislikes" else ExitCode.STEP_FAILED)
    said = capsys.readouterr()
    assert machines.queues() == queues
    assert machines.kept() == good
    assert ("clusterqueue/product is not active: a flavor is missing" in said.out) is (how == "dislikes")
    assert note(site) is None
    assert vc_apply(site) == code, "the files still say so"
    notify(site, services(8, 8))
    assert vc_apply(site) == ExitCode.OK


def test_new_queues_and_labels_of_what_is_not_taken_go(site: Path, machines: Machines) -> None:
    before = {ref for ref in machines.api.objects if ref.kind != "node"}
    labels = {name: machines.api.objects[Ref("node", name)]["metadata"]["labels"] for name in ("one", "two")}
    machines.api.dislikes = {"5"}
    text = services(3, 5).replace("product", "other").replace("devices: 3}]", "devices: 3}], pinned: [two]")
    notify(site, text)
    assert vc_apply(site) == ExitCode.VERIFICATION_FAILED
    assert {ref for ref in machines.api.objects if ref.kind != "node"} == before
    found = {name: machines.api.objects[Ref("node", name)]["metadata"]["labels"] for name in ("one", "two")}
    assert found == labels


def test_the_first_ones_cannot_be_taken_back(site: Path, machines: Machines, capsys: Any) -> None:
    machines.api.objects = {ref: it for ref, it in machines.api.objects.items() if ref.kind == "node"}
    machines.api.dislikes = {"8"}
    assert vc_apply(site) == ExitCode.VERIFICATION_FAILED
    assert machines.kept() == divided(site)


def test_a_run_that_was_cut_goes_on_and_knows_what_worked(site: Path, machines: Machines) -> None:
    good = divided(site)
    notify(site, services(4, 12))
    machines.dies = True
    assert vc_apply(site) == ExitCode.INTERRUPTED
    assert note(site) == good
    machines.dies = False
    machines.api.dislikes = {"12"}
    assert vc_apply(site) == ExitCode.VERIFICATION_FAILED
    assert machines.kept() == good
    machines.api.dislikes = set()
    assert vc_apply(site) == ExitCode.OK
    assert note(site) is None


def test_a_cut_run_that_had_brought_all_is_asked_again(site: Path, machines: Machines, capsys: Any) -> None:
    """Killed before the scheduler was asked: nothing is left to change, and nothing says that it was taken."""
    good = divided(site)
    state_of(site).path.mkdir()
    write_good(state_of(site).virtual_clusters, good)
    notify(site, services(4, 12))
    machines.api.dislikes = {"12"}
    machines.addons()
    assert vc_apply(site) == ExitCode.VERIFICATION_FAILED
    assert machines.kept() == good
    assert played(machines) == []


def test_what_was_applied_otherwise_since_is_what_worked(site: Path, machines: Machines) -> None:
    """A note of a run that was cut, and then `apply` was run: its virtual clusters stand."""
    old = divided(site)
    state_of(site).path.mkdir()
    write_good(state_of(site).virtual_clusters, old)
    notify(site, services(6, 10))
    machines.addons()
    newer = divided(site)
    machines.api.dislikes = {"12"}
    notify(site, services(4, 12))
    assert vc_apply(site) == ExitCode.VERIFICATION_FAILED
    assert machines.kept() == newer


def test_another_scheduler_is_none_of_its_business(site: Path, machines: Machines, capsys: Any) -> None:
    notify(site, services(8, 8).replace("kueue", "volcano"))
    assert vc_apply(site) == ExitCode.PREFLIGHT_FAILED
    assert "scheduler-differs-from-cluster" in capsys.readouterr().err
    notify(site, GROUPS)
    assert vc_apply(site) == ExitCode.USAGE
    assert played(machines) == []


def test_without_a_terminal_yes_is_needed(site: Path, machines: Machines, capsys: Any) -> None:
    assert run(["vc", "apply", "--site", str(site)]) == ExitCode.USAGE
    assert "add --yes" in capsys.readouterr().err
    assert machines.requests == []
