"""Add-ons on a control plane: applied where they differ, pruned from their records, one failure stops no other."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from .conftest import ModuleFailedError

Run = Callable[..., dict[str, Any]]
# a kubectl that keeps what it was asked, and answers by the files beside it
KUBECTL = """#!/bin/sh
cd {folder}
printf '%s\\n' "$*" >> asked
case "$*" in
  *"patch "*) exit 0 ;;
  *" diff "*) cat > /dev/null; cat differs; exit $(cat status) ;;
  *" apply "*)
    cat > applied
    test ! -s uncounted || {{ cat uncounted >&2; echo -n > uncounted; exit 1; }}
    grep -q '"refused"' applied && {{ echo "denied the request" >&2; exit 1; }}; exit 0 ;;
  *"get customresourcedefinitions "*) cat defined ;;
  *"get priorityclasses "*) cat classes ;;
  *" delete "*"--selector="*) cat ours; echo -n > ours; test ! -e fading || mv fading instances ;;
  *" --all-namespaces --output=jsonpath"*) cat instances; test ! -e fading || mv fading instances ;;
  *"deletionTimestamp"*) cat versions ;;
  *"=json persistentvolumes") cat volumes ;;
  *"=json pods --all-namespaces") cat users ;;
  *"--all-namespaces"*) cat instances ;;
  *"pods,persistentvolumeclaims"*) cat pods ;;
  *" get "*managed-by*)
    for word in $*; do case "$word" in --field-selector=*) name=${{word##*=}} ;; esac; done
    grep "/$name$" there | sed 's/|.*//' ;;
  *" wait --for=delete pods "*) test ! -e ending || mv ending pods ;;
  *" wait --for=condition=Established "*) test ! -s unserved || {{ cat unserved >&2; echo -n > unserved; exit 1; }} ;;
  *" rollout "*) test ! -e deleted || echo 0 > rollout; exit $(cat rollout) ;;
  *"=json --namespace "*" deployment/"*) cat deployment ;;
  *"=json pods --namespace "*) cat pods-of-rollout ;;
  *" delete pods "*) touch deleted ;;
esac
"""


def config_map(name: str, **data: str) -> dict[str, Any]:
    """An object."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n"}, "data": data}


def addon(name: str, *objects: dict[str, Any], **words: Any) -> dict[str, Any]:
    """An add-on as the action gives it."""
    return {"name": name, "objects": list(objects), "waits": [], "replaces": [], "not_beside": [], **words}


class Machine:
    """A control plane: its records, and a kubectl stand-in."""

    def __init__(self, folder: Path, run: Run, identity: Callable[[dict[str, Any]], tuple[str, str]]) -> None:
        self._identity = identity
        self.folder = folder
        self.records = folder / "roles"
        self.records.mkdir()
        self._run = run
        program = folder / "kubectl-stand-in"
        program.write_text(KUBECTL.format(folder=folder))
        program.chmod(0o755)
        for name, text in {
            "differs": "",
            "status": "1",
            "rollout": "0",
            "there": "",
            "pods": "",
            "instances": "",
            "defined": "",
            "versions": "",
            "classes": "",
            "ours": "",
        }.items():
            self.says(name, text)

    def says(self, name: str, text: str) -> None:
        """What kubectl will answer."""
        (self.folder / name).write_text(text)

    def has(self, *names: str, removal: str = "") -> None:
        """Which objects of ours are in the cluster (kind/name), and what their annotation says."""
        kinds = {"configmap": "ConfigMap", "namespace": "Namespace", "serviceaccount": "ServiceAccount"}
        lines = [f"{kinds.get(name.partition('/')[0], 'Other')} v1 {removal}|{name}\n" for name in names]
        self.says("there", "".join(lines))

    def record(self, name: str, *objects: tuple[str, str]) -> None:
        """A record of an earlier run."""
        managed = [{"kind": "object", "namespace": space, "name": thing, "version": "1"} for space, thing in objects]
        (self.records / f"{name}.json").write_text(json.dumps({"settings": {}, "managed": managed}))

    def recorded(self) -> dict[str, list[str]]:
        """Record -> the objects in it."""
        found = {path.stem: json.loads(path.read_text())["managed"] for path in sorted(self.records.iterdir())}
        return {name: [item["name"] for item in managed] for name, managed in found.items()}

    def asked(self, word: str) -> list[str]:
        """The commands with that word."""
        path = self.folder / "asked"
        return [line for line in path.read_text().splitlines() if word in line] if path.exists() else []

    def applied(self) -> list[str]:
        """Names of the objects that were applied last."""
        return [entry["metadata"]["name"] for entry in json.loads((self.folder / "applied").read_text())["items"]]

    def run(self, *addons: dict[str, Any], check: bool = False, **words: Any) -> dict[str, Any]:
        """Runs the module with these add-ons wanted."""
        objects = [entry for item in addons for entry in item["objects"]]
        kept = [list(self._identity(entry)) for entry in objects]
        program = str(self.folder / "kubectl-stand-in")
        arguments = {"addons": list(addons), "wanted": [item["name"] for item in addons], "kept": kept, **words}
        return self._run("pai_addons", check=check, kubectl=program, **arguments)


@pytest.fixture
def machine(tmp_path: Path, run_module: Run, managed: Any, objects: Any, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Without any record."""
    made = Machine(tmp_path, run_module, objects.identity)
    monkeypatch.setattr(managed, "ROLES_DIR", str(made.records))
    return made


def test_add_on_is_applied_and_recorded(machine: Machine) -> None:
    said = machine.run(addon("a", config_map("one")), settings={"addon.a": {"image": "d1"}})
    assert said["changed"] is True
    assert machine.recorded() == {"addon.a": ["configmap/one"]}
    assert json.loads((machine.records / "addon.a.json").read_text())["settings"] == {"image": "d1"}


def test_what_is_as_it_should_be_is_left_alone(machine: Machine) -> None:
    machine.says("status", "0")
    assert machine.run(addon("a", config_map("one")))["changed"] is False
    assert not machine.asked(" apply ")
    assert machine.recorded() == {"addon.a": ["configmap/one"]}, "a lost record is made again"


def test_of_what_an_admin_made_only_our_fields_are_set(machine: Machine, snapshot: SnapshotAssertion) -> None:
    """`kubectl apply --server-side` takes over what was applied before, and drops it with the next change."""
    hand = config_map("by-hand")
    hand["metadata"]["annotations"] = {"pai-install/adopted": "true"}
    assert machine.run(addon("a", config_map("one"), hand))["changed"] is True
    assert machine.applied() == ["one"]
    (asked,) = machine.asked("patch ")
    assert asked == snapshot
    assert json.loads(asked.partition("--patch=")[2]) == {"metadata": hand["metadata"], "data": {}}
    assert machine.recorded() == {"addon.a": ["configmap/one", "configmap/by-hand"]}


def test_check_mode_changes_nothing(machine: Machine) -> None:
    machine.record("addon.gone", ("n", "configmap/old"))
    said = machine.run(addon("a", config_map("one")), check=True)
    assert said["changed"] is True
    assert said["removed"] == ["configmap/old"]
    assert "- configmap/old" in said["diff"]["prepared"]
    assert not machine.asked(" apply ")
    assert not machine.asked(" delete ")
    assert machine.recorded() == {"addon.gone": ["configmap/old"]}


def test_objects_that_a_newer_version_lacks_are_pruned(machine: Machine) -> None:
    machine.record("addon.a", ("n", "configmap/one"), ("n", "configmap/old"), ("n", "secret/gone"))
    machine.has("configmap/old", "configmap/one")
    said = machine.run(addon("a", config_map("one")))
    assert said["removed"] == ["configmap/old"], "secret/gone is not there any more"
    assert len(machine.asked(" delete ")) == 1
    assert all("managed-by=pai-install" in line for line in machine.asked(" get ") if "old" in line), "only ours"


def test_object_that_another_add_on_took_over_stays(machine: Machine) -> None:
    machine.record("addon.a", ("n", "configmap/one"), ("n", "configmap/two"))
    machine.has("configmap/two")
    said = machine.run(addon("a", config_map("one")), addon("b", config_map("two")))
    assert said["removed"] == []


def test_add_on_that_is_not_wanted_is_removed_with_its_record(machine: Machine) -> None:
    machine.record("addon.old", ("", "namespace/mine"), ("n", "configmap/one"))
    machine.record("base")
    machine.has("namespace/mine", "configmap/one")
    said = machine.run()
    assert said["removed"] == ["configmap/one", "namespace/mine"], "the last one first"
    assert machine.recorded() == {"base": []}
    assert machine.run()["changed"] is False


def test_a_namespace_in_which_others_run_stays_and_is_named(machine: Machine, snapshot: SnapshotAssertion) -> None:
    machine.record("addon.old", ("", "namespace/mine"))
    machine.has("namespace/mine")
    machine.says("pods", "pod/theirs\n")
    assert machine.run()["kept"] == snapshot
    assert not machine.asked(" delete ")


def test_a_definition_that_a_newer_version_lacks_stays_while_there_are_objects(
    machine: Machine, snapshot: SnapshotAssertion
) -> None:
    machine.record("addon.a", ("n", "configmap/one"), ("", "customresourcedefinition/q.x.io"))
    machine.has("customresourcedefinition/q.x.io")
    machine.says("defined", "q.x.io Q \n")
    machine.says("instances", "Q|n/theirs  \n")
    said = machine.run(addon("a", config_map("one")))
    assert said["kept"] == snapshot
    assert not machine.asked(" delete ")


def test_a_namespace_whose_last_pod_is_ending_goes_with_it(machine: Machine) -> None:
    machine.record("addon.old", ("", "namespace/mine"), ("mine", "deployment/one"))
    machine.has("namespace/mine", "deployment/one")
    machine.says("pods", "pod/one-x\n")
    machine.says("ending", "")
    said = machine.run()
    assert said["removed"] == ["deployment/one", "namespace/mine"]
    assert said["kept"] == []


def volume(driver: str, claim: str) -> dict[str, Any]:
    """A PV of the group vision that a driver mounts."""
    return {"spec": {"csi": {"driver": driver}, "claimRef": {"namespace": "vision", "name": claim}}}


def pod(name: str, claim: str, phase: str = "Running", namespace: str = "vision") -> dict[str, Any]:
    """A pod with a claim, beside a volume of another kind."""
    volumes = [{"name": "a", "persistentVolumeClaim": {"claimName": claim}}, {"name": "b", "emptyDir": {}}]
    spec, metadata = {"volumes": volumes}, {"name": name, "namespace": namespace}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("using", "stays"),
    [
        (pod("train", "homes"), True),
        (pod("waits", "homes", "Pending"), True),
        (pod("ended", "homes", "Succeeded"), False),
        (pod("other", "data"), False),
        (pod("elsewhere", "homes", namespace="speech"), False),
        ({"metadata": {"name": "none", "namespace": "vision"}, "spec": {}, "status": {"phase": "Running"}}, False),
    ],
)
def test_a_csi_driver_stays_while_pods_mount_by_it(machine: Machine, using: dict[str, Any], *, stays: bool) -> None:
    """Without it the kubelet cannot unmount: the pods would never go."""
    machine.record("addon.csi_smb", ("", "csidriver/smb.csi.k8s.io"), ("kube-system", "daemonset/csi-smb-node"))
    machine.has("csidriver/smb.csi.k8s.io", "daemonset/csi-smb-node")
    volumes = [volume("smb.csi.k8s.io", "homes"), volume("file.csi.azure.com", "data"), {"spec": {"nfs": {}}}]
    machine.says("volumes", json.dumps({"items": volumes}))
    machine.says("users", json.dumps({"items": [using]}))
    for check in (True, False):
        said = machine.run(check=check)
        assert bool(said["removed"]) is not stays
        assert said["changed"] is not stays
    assert bool(machine.recorded()) is stays
    assert bool(machine.asked(" delete ")) is not stays
    if stays:
        assert f"vision/{using['metadata']['name']}" in said["kept"][0]


WORKLOAD = "Workload|vision/train "
KIND = "workloads.kueue.x-k8s.io Workload \n"


@pytest.fixture
def kueue(machine: Machine) -> Machine:
    """With a record of an add-on that is not wanted any more, and that defines a kind of objects."""
    definition, deployment = "customresourcedefinition/workloads.kueue.x-k8s.io", "deployment/kueue"
    machine.record("addon.kueue", ("", definition), ("pai-kueue", deployment))
    machine.has(definition, deployment)
    machine.says("defined", KIND)
    return machine


def test_what_defines_kinds_stays_as_long_as_there_are_objects_of_them(
    kueue: Machine, snapshot: SnapshotAssertion
) -> None:
    """Nothing would take care of them, and with their definition they would be lost."""
    kueue.says("instances", f"{WORKLOAD} \nClusterQueue|/vision  \n")
    said = kueue.run(check=True)
    assert said["kept"] == snapshot
    assert said["diff"]["prepared"] == f"({said['kept'][0]})\n"
    assert said["changed"] is False
    with pytest.raises(ModuleFailedError, match="there is Workload vision/train, ClusterQueue vision"):
        kueue.run()
    assert not kueue.asked(" delete ")
    assert list(kueue.recorded()) == ["addon.kueue"]


def test_of_many_objects_some_are_named(kueue: Machine) -> None:
    kueue.says("instances", "".join(f"Workload|vision/{number}  \n" for number in range(6)))
    (why,) = kueue.run(check=True)["kept"]
    assert why.endswith("Workload vision/3, Workload vision/4, ...")


def test_objects_of_ours_go_before_what_defines_them(kueue: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    kueue.record("addon.virtual_clusters", ("", "clusterqueue/vision"))
    kueue.has("customresourcedefinition/workloads.kueue.x-k8s.io", "deployment/kueue", "clusterqueue/vision")
    kueue.says("instances", "ClusterQueue|/vision  pai-install\n")
    order = ["clusterqueue/vision", "deployment/kueue", "customresourcedefinition/workloads.kueue.x-k8s.io"]
    planned = kueue.run(check=True)["removed"]
    assert sorted(planned) == sorted(order)
    kueue.says("instances", "ClusterQueue|/vision 2026-11-22T20:00:00Z pai-install\n")
    kueue.says("fading", "")
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    assert kueue.run()["removed"] == order
    assert kueue.recorded() == {}


def queue(name: str) -> dict[str, Any]:
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}}


def test_what_it_must_not_run_beside_goes_first_with_all_that_is_ours(kueue: Machine) -> None:
    """Queues of an add-on that stays go, too, while the controller that lets them go is there."""
    kueue.record("addon.virtual_clusters", ("", "clusterqueue/vision"))
    kueue.says("instances", "ClusterQueue|/vision  pai-install\n")
    kueue.says("ours", "clusterqueue.kueue.x-k8s.io/vision\n")
    kueue.says("fading", "")
    said = kueue.run(
        addon("volcano", config_map("v"), not_beside=["kueue"]), addon("virtual_clusters", queue("vision"))
    )
    gone = ["clusterqueue/vision", "deployment/kueue", "customresourcedefinition/workloads.kueue.x-k8s.io"]
    assert said["removed"] == gone
    asked = kueue.asked("")
    applied = next(place for place, line in enumerate(asked) if " apply " in line)
    deleted = [place for place, line in enumerate(asked) if " delete " in line]
    assert len(deleted) == len(gone)
    assert max(deleted) < applied
    assert kueue.recorded() == {"addon.virtual_clusters": ["queue/vision"], "addon.volcano": ["configmap/v"]}


def test_what_a_controller_made_by_itself_is_not_asked_to_go(kueue: Machine) -> None:
    """Volcano refuses to let go of its queues default and root, and with them the other queues would stay."""
    kueue.says("defined", "jobs.batch.volcano.sh Job \nqueues.scheduling.volcano.sh Queue default root\n")
    kueue.says("ours", "No resources found\n")
    assert not [name for name in kueue.run(addon("b", config_map("two")))["removed"] if name.endswith("/")]
    first, second = (line for line in kueue.asked(" delete ") if "--selector=" in line)
    assert "delete jobs.batch.volcano.sh --all-namespaces" in first
    assert "--field-selector" not in first
    assert "delete queues.scheduling.volcano.sh --all-namespaces" in second
    assert "--field-selector=metadata.name!=default,metadata.name!=root" in second


def test_as_long_as_it_stays_the_other_one_waits(kueue: Machine, snapshot: SnapshotAssertion) -> None:
    kueue.says("instances", f"{WORKLOAD} \n")
    both = addon("volcano", config_map("v"), not_beside=["kueue", "hived"]), addon("other", config_map("o"))
    with pytest.raises(ModuleFailedError, match=r"Workload vision/train.*volcano: waits until kueue is gone"):
        kueue.run(*both)
    assert not kueue.asked(" delete ")
    assert list(kueue.recorded()) == ["addon.kueue", "addon.other"]
    assert kueue.run(*both, check=True)["kept"] == snapshot


def test_objects_of_ours_that_do_not_go_keep_what_lets_them_go(kueue: Machine) -> None:
    kueue.says("instances", "ClusterQueue|/vision  pai-install\n")
    kueue.says("ours", "clusterqueue.kueue.x-k8s.io/vision\n")
    with pytest.raises(ModuleFailedError, match="there is ClusterQueue vision"):
        kueue.run()
    assert list(kueue.recorded()) == ["addon.kueue"]


def priority(name: str, **words: Any) -> dict[str, Any]:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, **words}


def test_a_class_of_priority_that_is_another_one_makes_way(machine: Machine, snapshot: SnapshotAssertion) -> None:
    """The API server refuses any change of it."""
    machine.says("classes", "crit 30 PreemptLowerPriority\nprod 20 PreemptLowerPriority\ntest 10 Never\n")
    classes = priority("crit", value=30, preemptionPolicy="Never"), priority("prod", value=20)
    machine.run(addon("a", *classes, priority("test", value=11, preemptionPolicy="Never"), priority("oppo", value=1)))
    (asked,) = machine.asked(" delete ")
    assert asked.partition(" delete ")[2] == snapshot
    assert all("managed-by=pai-install" in line for line in machine.asked("get priorityclasses")), "only ours"
    assert machine.applied() == ["crit", "prod", "test", "oppo"]


def test_what_does_not_go_is_not_waited_for_for_ever(
    kueue: Machine, objects: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    kueue.says("instances", f"{WORKLOAD}2026-11-22T20:00:00Z \n")
    monkeypatch.setattr(objects, "ENDING_S", 0)
    with pytest.raises(ModuleFailedError, match="there is Workload vision/train"):
        kueue.run()


def test_what_a_controller_makes_by_itself_goes_with_it(kueue: Machine, snapshot: SnapshotAssertion) -> None:
    kueue.says("defined", "workloads.kueue.x-k8s.io Workload default root\n")
    kueue.says("instances", "Workload|/default  \nWorkload|/root  \nWorkload|/vision  \n")
    assert kueue.run(check=True)["kept"] == snapshot
    kueue.says("instances", "Workload|/default  \nWorkload|/root  \n")
    assert kueue.run()["removed"] == ["deployment/kueue", "customresourcedefinition/workloads.kueue.x-k8s.io"]


def test_a_definition_that_is_gone_has_no_objects(kueue: Machine) -> None:
    kueue.says("defined", "")
    kueue.says("instances", f"{WORKLOAD} \n")
    kueue.has("deployment/kueue")
    assert kueue.run()["removed"] == ["deployment/kueue"]


def test_what_others_use_too_stays_without_what_is_ours(machine: Machine, snapshot: SnapshotAssertion) -> None:
    machine.record("addon.groups", ("", "namespace/team-a"), ("team-a", "serviceaccount/default"))
    machine.has("namespace/team-a", "serviceaccount/default", removal="release")
    said = machine.run()
    assert said["removed"] == []
    assert said["kept"] == snapshot
    assert not machine.asked(" delete ")
    assert len(machine.asked(" apply ")) == 2
    (bare,) = json.loads((machine.folder / "applied").read_text())["items"]
    assert bare == {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}
    assert machine.recorded() == {}


def test_an_object_to_keep_stays_whole_without_our_label(machine: Machine) -> None:
    machine.record("addon.console", ("", "clusterrolebinding/pai-user-boss"))
    machine.has("clusterrolebinding/pai-user-boss", removal="keep")
    said = machine.run()
    assert (said["removed"], len(said["kept"])) == ([], 1)
    assert not machine.asked(" delete ")
    assert not machine.asked(" apply ")
    (patched,) = machine.asked(" patch ")
    assert "clusterrolebinding/pai-user-boss" in patched
    assert '"app.kubernetes.io/managed-by": null' in patched
    assert machine.recorded() == {}


def test_what_is_still_being_deleted_is_no_success(
    machine: Machine, managed: Any, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    program = str(machine.folder / "kubectl-stand-in")
    call = managed.Kubectl(program=program).call
    monkeypatch.setattr(managed, "Kubectl", lambda: SimpleNamespace(call=call))
    machine.says("versions", 'ConfigMap/one 2026-11-22T20:00:00Z {"f:data":{}}\n')
    with pytest.raises(ModuleFailedError, match="still being deleted: configmap/one in n"):
        machine.run(addon("a", config_map("one")))
    assert machine.recorded() == {}
    machine.says("versions", 'ConfigMap/one  {"f:data":{}}\n')
    assert machine.run(addon("a", config_map("one")))["changed"] is True
    assert managed.drift([{"kind": "object", "namespace": "n", "name": "configmap/one", "version": "1"}]) == snapshot
    machine.says("versions", "ConfigMap/one 2026-11-22T20:00:00Z {}\n")
    assert managed.drift([{"kind": "object", "namespace": "n", "name": "configmap/one", "version": "1"}]) == snapshot


def test_record_of_an_earlier_form_is_taken_over(machine: Machine) -> None:
    machine.record("pod_network", ("n", "configmap/one"), ("n", "configmap/old"))
    machine.has("configmap/old")
    said = machine.run(addon("flannel", config_map("one"), replaces=["pod_network"]))
    assert said["removed"] == ["configmap/old"]
    assert machine.recorded() == {"addon.flannel": ["configmap/one"]}


@pytest.mark.parametrize(
    "words",
    [
        "secrets is forbidden: status unknown for quota: pai-objects, resources: count/secrets",
        'failed calling webhook "mclusterqueue.kb.io": dial tcp 10.96.0.9:443: connection refused',
    ],
)
def test_a_new_quota_and_a_controller_that_has_restarted_are_waited_for(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    machine.says("uncounted", words)
    machine.run(addon("a", config_map("one")))
    assert machine.recorded() == {"addon.a": ["configmap/one"]}
    assert len(machine.asked(" apply ")) == 2


def test_one_that_fails_stops_none_of_the_others(machine: Machine) -> None:
    with pytest.raises(ModuleFailedError, match="a: kubectl apply failed: denied the request") as failure:
        machine.run(addon("a", config_map("refused")), addon("b", config_map("fine")))
    assert failure.value.result["changed"] is True
    assert machine.recorded() == {"addon.b": ["configmap/fine"]}


def test_rollout_that_does_not_end_is_a_failure_with_evidence(machine: Machine) -> None:
    machine.says("rollout", "1")
    with pytest.raises(ModuleFailedError, match="deployment/x in n is not complete after 180 s") as failure:
        machine.run(addon("a", config_map("one"), waits=["n deployment/x"]))
    assert set(failure.value.result["evidence"]) == {"a pods", "a events"}
    assert machine.recorded() == {}


def pod_of_rollout(name: str, *, ready: bool, restarts: int) -> dict[str, Any]:
    """One with a container."""
    return {"metadata": {"name": name}, "status": {"containerStatuses": [{"ready": ready, "restartCount": restarts}]}}


def test_pods_that_crash_begin_anew_with_what_was_applied(machine: Machine) -> None:
    """What made them crash is repaired; the kubelet would try them again minutes later."""
    machine.says("rollout", "1")
    machine.says("deployment", json.dumps({"spec": {"selector": {"matchLabels": {"app": "d"}}}}))
    pods = [
        pod_of_rollout("crashes", ready=False, restarts=7),
        pod_of_rollout("starts", ready=False, restarts=0),
        pod_of_rollout("runs", ready=True, restarts=2),
        {"metadata": {"name": "waits"}, "status": {}},
    ]
    machine.says("pods-of-rollout", json.dumps({"items": pods}))
    assert machine.run(addon("a", config_map("one"), waits=["n deployment/d"]))["applied"] == ["a"]
    (asked,) = machine.asked(" delete pods ")
    assert asked.partition(" delete pods ")[2] == "crashes --ignore-not-found --wait=false"
    assert "--selector=app=d" in machine.asked("=json pods ")[0]


def test_a_rollout_that_is_complete_is_asked_about_once(machine: Machine) -> None:
    machine.run(addon("a", config_map("one"), waits=["n deployment/d"]))
    assert len(machine.asked(" rollout ")) == 1
    assert not machine.asked("=json")


def test_nothing_but_what_is_asked_for_is_removed(machine: Machine) -> None:
    machine.has("configmap/one", "configmap/two")
    machine.record("addon.a", ("n", "configmap/one"))
    machine.record("addon.b", ("n", "configmap/two"))
    assert machine.run(only=["b"])["removed"] == ["configmap/two"]
    assert machine.recorded() == {"addon.a": ["configmap/one"]}


def test_definitions_are_served_before_what_needs_them(machine: Machine) -> None:
    definition = {"kind": "CustomResourceDefinition", "metadata": {"name": "q.x.io"}}
    namespace = {"kind": "Namespace", "metadata": {"name": "n"}}
    machine.run(addon("a", config_map("one"), definition, namespace))
    words = [line.split(" --")[1].split()[-1] for line in machine.asked(" apply ") + machine.asked(" wait ")]
    assert len(words) == 4, "namespaces, definitions, a wait for them, the rest"


@pytest.mark.parametrize(
    ("said", "served"), [("status.conditions accessor error: <nil> is of the type <nil>", True), ("timed out", False)]
)
def test_a_definition_without_any_state_yet_is_asked_for_again(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, said: str, *, served: bool
) -> None:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    definition = {"kind": "CustomResourceDefinition", "metadata": {"name": "q.x.io"}}
    machine.says("unserved", said)
    if served:
        assert machine.run(addon("a", definition))["changed"] is True
    else:
        with pytest.raises(ModuleFailedError, match=r"does not serve customresourcedefinition/q\.x\.io: timed out"):
            machine.run(addon("a", definition))
