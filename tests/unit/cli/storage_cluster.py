"""A stand-in for machines on which the add-on `storages` is applied and storages are tried; no Ansible."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pai_install.engine.base import Event, RunRequest
from pai_install.kube.model import Ref
from pai_install.plan.model import HostStep, Plan, Playbook, Step
from pai_install.site.load import load_site
from pai_install.storage.compile import closed_claims, grants_of
from pai_install.storage.objects import closings, volumes
from tests.unit.cli.stub_environment import World
from tests.unit.cluster.fake import FakeCluster, ref_of
from tests.unit.runs import ScriptedEngine, done, event

LABEL = "app.kubernetes.io/managed-by"
CLAIM = "persistentvolumeclaim"


class Killed(BaseException):
    """What a kill -9 is to this process."""


def pod(name: str, claim: str, namespace: str = "vision", phase: str = "Running") -> dict[str, Any]:
    """One that uses a claim."""
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"nodeName": "one", "volumes": [{"persistentVolumeClaim": {"claimName": claim}}]},
        "status": {"phase": phase},
    }


@dataclass
class Machines(ScriptedEngine):
    """Applies what the site and its rotations say, as module pai_addons does: what exists keeps its immutable spec.

    folders: places that can be mounted. dies_at: at how many doors from now the process is killed. refuses: what the
    API says of a new object. data: place -> name of a file -> its text, which pods that copy bring over, unless
    `answers` has something to say instead: mode -> what each pod says.
    """

    script: Mapping[str, Sequence[Event | BaseException]] = field(default_factory=dict)
    site: Path = Path()
    api: FakeCluster = field(default_factory=FakeCluster)
    folders: set[str] = field(default_factory=set)
    dies_at: int = -1
    refuses: str = ""
    data: dict[str, dict[str, str]] = field(default_factory=dict)
    answers: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    copies: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.api.makes = self.made

    def made(self, item: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """What a new object becomes: a pod that copies ends at once."""
        if item["metadata"].get("labels", {}).get("pai-install/probe") != "storage-copy" or item["kind"] != "Pod":
            return [item]
        self.door()
        mode = item["metadata"]["labels"]["pai-install/copy-mode"]
        old, new = (self.place(item["metadata"]["namespace"], it) for it in _claims(item))
        said = self.answers[mode].pop(0) if self.answers.get(mode) else self.carried(mode, old, new, _words(item))
        self.copies.append((mode, item["spec"]["nodeName"]))
        text = "\n".join(f"{key}={value}" for key, value in said.items())
        state = {"state": {"terminated": {"message": text}}}
        phase = "Failed" if "error" in said or "lost" in said else "Succeeded"
        return [{**item, "status": {"phase": phase, "containerStatuses": [state]}}]

    def carried(self, mode: str, old: str, new: str, words: Mapping[str, str]) -> dict[str, str]:
        """What rsync would do."""
        source, target = self.data.setdefault(old, {}), self.data.setdefault(new, {})
        if mode == "measure":
            empty = {} if target else {"empty": "yes"}
            return {"files": str(len(source)), "bytes": "10", "free_kib": "99", **empty, "step": "done"}
        if mode.startswith("copy"):
            if "--delete" in words["HOW"]:
                target.clear()
            target.update({name: text for name, text in source.items() if name not in target or words["LATE"] == "no"})
            return {"files": str(len(source)), "bytes": "10", "step": "done"}
        return {"differ": str(sum(target.get(name) is None for name in source)), "step": "done"}

    def door(self) -> None:
        """Something that a kill may come before or after."""
        self.dies_at -= 1
        if self.dies_at == 0:
            raise Killed

    def run(self, request: RunRequest) -> Generator[Event]:
        """Plays the playbook."""
        self.requests.append(request)
        self.door()
        if request.playbook == "addons.yml":
            yield from self.apply()
        elif request.playbook == "verify.yml":
            yield from done(event("ok", "master", "Verify"))
        elif request.playbook == "storage-test.yml":
            yield from self.tried(request.extra_vars)
        else:
            yield from (it for it in self.script[request.playbook] if isinstance(it, Event))
        self.door()

    def wanted(self) -> list[dict[str, Any]]:
        """What the cluster should have."""
        site = load_site(self.site).site
        return [_ours(item) for item in (*volumes(grants_of(site)), *closings(closed_claims(site)))]

    def settled(self) -> bool:
        """Whether it has that."""
        ours = {ref for ref, item in self.api.objects.items() if LABEL in item["metadata"].get("labels", {})}
        return ours == {ref_of(item) for item in self.wanted()}

    def apply(self) -> list[Event]:
        """Makes what is missing, takes away what is no longer wanted. A pod that uses a claim holds it."""
        wanted = {ref_of(item): item for item in self.wanted()}
        for ref, item in wanted.items():
            if ref not in self.api.objects and self.refuses and ref.name.endswith(self.refuses):
                return done(event("failed", "master", "Apply", msg=f"exceeded quota: {ref}"), failures=["master"])
            old = self.api.objects.setdefault(ref, {**item, "status": {"phase": "Bound"}})
            assert old["spec"] == item["spec"], f"{ref}: spec is immutable after creation"
        for ref in [ref for ref, item in self.api.objects.items() if LABEL in item["metadata"].get("labels", {})]:
            if ref not in wanted:
                assert ref.kind != CLAIM or not self.users(ref), f"{ref} was taken from a pod that runs"
                del self.api.objects[ref]
        return done(event("changed", "master", "Apply the add-ons"))

    def users(self, claim: Ref) -> list[str]:
        """Pods that run and use a claim."""
        return [
            ref.name
            for ref, item in self.api.objects.items()
            if ref.kind == "pod" and ref.namespace == claim.namespace and item["status"]["phase"] == "Running"
            for volume in item["spec"]["volumes"]
            if volume["persistentVolumeClaim"]["claimName"] == claim.name
        ]

    def place(self, namespace: str, claim: str) -> str:
        """The folder behind a claim; empty where there is none."""
        found = self.api.objects.get(Ref(CLAIM, claim, namespace))
        volume = self.api.objects.get(Ref("persistentvolume", found["spec"]["volumeName"])) if found else None
        return str(volume["spec"].get("nfs", volume["spec"].get("hostPath", {}))["path"]) if volume else ""

    def tried(self, words: Mapping[str, Any]) -> list[Event]:
        """A finding per grant."""
        found = []
        for grant in words["storage_grants"]:
            good = self.place(grant["namespace"], grant["claim"]) in self.folders
            verdict, message = ("PASS", "mounts") if good else ("FAIL", "cannot be mounted")
            found.append({"id": "storage-mount", "verdict": verdict, "subject": "one", "message": message})
        seen = event("ok", "master", "Mount", findings=found)
        return done(replace(seen, action="pai_storage_probe"))

    def plan(self, *_words: Any, **_more: Any) -> Plan:
        """Stands in for the planner."""
        step = Step("addons", "Apply the add-ons", (HostStep("master", ("changed",)),), Playbook("addons.yml"))
        return Plan(() if self.settled() else (step,), World().settings(), {}, "master")


def _claims(item: Mapping[str, Any]) -> list[str]:
    return [volume["persistentVolumeClaim"]["claimName"] for volume in item["spec"]["volumes"]]


def _words(item: Mapping[str, Any]) -> dict[str, str]:
    (container,) = item["spec"]["containers"]
    return {it["name"]: it["value"] for it in container["env"]}


def _ours(item: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {**item["metadata"], "labels": {**item["metadata"].get("labels", {}), LABEL: "pai-install"}}
    return {**item, "metadata": metadata}
