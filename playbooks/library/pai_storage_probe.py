#!/usr/bin/python
"""Ansible module: can every worker use the storages that groups are granted, seen from pods on them?"""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_storage_probe
short_description: Mount storages on workers, write, read back, measure, clean up
description:
  - Starts a small pod for each storage and worker in the namespace of a granted group, a few in parallel, and removes
    all pods, including those of an interrupted run.
  - Every request to the API and every pod has a time limit. A hanging mount is a finding.
  - Returns findings. A failed check never fails the task.
options:
  grants:
    description: "Storages and their mounts: storage, namespace, claim, read_only, machine."
    type: list
    elements: dict
    required: true
  workers: {description: Names of the nodes to try them on., type: list, elements: str, required: true}
  image: {description: An image with busybox., type: str, required: true}
  mib: {description: MiB to write and read back., type: int, default: 16}
  parallel: {description: Pods that mount or write at a time., type: int, default: 20}
  timeout: {description: Seconds for one storage on one worker., type: int, default: 150}
  kubectl: {description: The kubectl of the machine., type: path, default: /usr/local/bin/kubectl}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Try the storages
  pai_storage_probe:
    grants: [{storage: data, namespace: vision, claim: data}]
    workers: [worker-1]
    image: "registry.pai.internal/busybox@sha256:..."
"""
RETURN = r"""
findings: {description: One verdict per storage and worker., type: list, elements: dict, returned: always}
"""

import concurrent.futures
import json
import secrets
import time
from collections.abc import Iterable
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_cluster_state import child, judge_node, node_facts, text
from ansible.module_utils.pai_finding import finding
from ansible.module_utils.pai_kubectl import KUBECTL, Kubectl, KubectlError
from ansible.module_utils.pai_storage_pod import MAX_MIB, OURS, RUN, Grant, How, Trial, pod, trials
from ansible.module_utils.pai_storage_verdict import (
    ENDED,
    claim_problem,
    ended,
    judge,
    mount_events,
    node_problem,
    started,
    unasked,
)

# a pod that waits for its mount for so long is no longer counted among those that work, up to so many times as many
SLOW_S = 20
HANGING = 10
# seconds between two lists of all pods, and between two lists of events where some pods wait
POLL_S = 1.0
EVENTS_S = 10.0
# the kubelet ends a pod that is over its time within these seconds, if its machine can
GRACE_S = 15
REMOVAL_S = 20
# lists of a thousand workers' pods
LIST_S = 60

Pods = dict[tuple[str, str], dict[str, Any]]
Finding = dict[str, str]


class Cluster:
    """API requests of the test, each with a timeout."""

    def __init__(self, kubectl: Kubectl, run: str) -> None:
        self.kubectl = kubectl
        self.mine = f"{RUN}={run}"

    def by_name(self, *words: str) -> Pods:
        """(namespace, name) -> object. Raises KubectlError."""
        return {key(entry): entry for entry in self.kubectl.items(*words, timeout_s=LIST_S)}

    def pods(self) -> Pods | None:
        """Returns the pods of this run, or None if the API server did not respond."""
        try:
            return self.by_name("pods", "--all-namespaces", f"--selector={self.mine}")
        except KubectlError:
            return None

    def events(self, namespaces: Iterable[str]) -> dict[tuple[str, str], list[str]]:
        """Returns the kubelets' messages about volumes, or {} if the API server did not respond."""
        found: list[dict[str, Any]] = []
        for namespace in namespaces:
            where = f"--namespace={namespace}"
            only = "--field-selector=involvedObject.kind=Pod,type=Warning"
            try:
                found += self.kubectl.items("events", where, only, timeout_s=LIST_S)
            except KubectlError:
                continue
        return mount_events(found)

    def log(self, trial: Trial) -> str:
        """Returns the current log of a running pod."""
        where = f"--namespace={trial.grant.namespace}"
        return self.kubectl.call("logs", where, trial.name, "--container=writer", "--tail=50", timeout_s=10).out

    def create(self, objects: list[dict[str, Any]]) -> tuple[set[str], str]:
        """Returns the names of the created pods, and the API server's message about the others."""
        data = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        words = (f"--request-timeout={LIST_S}s", "create", "--filename=-")
        # create in place of apply: a pod that exists already belongs to another run and is none of ours.
        answer = self.kubectl.run(*words, data=data, timeout_s=2 * LIST_S)
        made = {line.split()[0].partition("/")[2] for line in answer.out.splitlines() if " created" in line}
        return made, answer.err.strip()

    def delete(self, keys: Iterable[tuple[str, str]], *how: str) -> None:
        """Begins to delete pods."""
        names: dict[str, list[str]] = {}
        for namespace, name in keys:
            names.setdefault(namespace, []).append(name)
        for namespace, some in names.items():
            where = f"--namespace={namespace}"
            self.kubectl.call(
                "delete", "pods", where, *some, "--ignore-not-found", "--wait=false", *how, timeout_s=LIST_S
            )

    def remove(self, selector: str) -> None:
        """Deletes pods. A pod with a dead mount is deleted by force after a while."""
        began, left = time.monotonic(), self._left(selector)
        self.delete(left)
        while left and time.monotonic() < began + REMOVAL_S:
            time.sleep(POLL_S)
            left = self._left(selector)
        # The kubelet cannot end a pod whose mount hangs, so the API server forgets it.
        self.delete(left, "--force", "--grace-period=0")

    def _left(self, selector: str) -> list[tuple[str, str]]:
        try:
            return list(self.by_name("pods", "--all-namespaces", f"--selector={selector}"))
        except KubectlError:
            return []


class Probe:
    """The trials of one run, some at a time."""

    def __init__(self, cluster: Cluster, how: How, parallel: int) -> None:
        self.cluster = cluster
        self.how = how
        self.parallel = parallel
        self.waiting: list[Trial] = []
        self.open: dict[tuple[str, str], tuple[Trial, float]] = {}
        self.findings: list[Finding] = []
        self.events: dict[tuple[str, str], list[str]] = {}
        self.events_at = 0.0

    def all(self, wanted: list[Trial]) -> list[Finding]:
        """A verdict for each trial."""
        self.waiting = list(wanted)
        while self.waiting or self.open:
            self.start()
            self.look()
            if self.open:
                time.sleep(POLL_S)
        return self.findings

    def start(self) -> None:
        """Makes as many pods as may work now."""
        # Hanging pods do no work. If they counted, one dead server would stop the tests of all other storages.
        slow = sum(time.monotonic() - since > SLOW_S for _trial, since in self.open.values())
        room = min(self.parallel - len(self.open) + slow, HANGING * self.parallel - len(self.open))
        batch, self.waiting = self.waiting[: max(0, room)], self.waiting[max(0, room) :]
        if not batch:
            return
        made, output = self.cluster.create([pod(trial, self.how) for trial in batch])
        now = time.monotonic()
        self.open.update({at(trial): (trial, now) for trial in batch if trial.name in made})
        refused = [trial for trial in batch if trial.name not in made]
        if not made and "Error from server" not in output:
            refused, self.waiting = refused + self.waiting, []  # there is no API: the others would fare as these
        self.findings += [rejected_pod(trial, output) for trial in refused]

    def look(self) -> None:
        """Judges pods that ended or timed out, and deletes them."""
        pods = self.cluster.pods()
        self.refresh(pods)
        # A kubelet that hangs itself does not end its pods at their deadline.
        late = {name for name, (_trial, since) in self.open.items() if self.age(since) > self.how.timeout_s + GRACE_S}
        over = [name for name, (_trial, since) in self.open.items() if name in late or self.is_over(name, since, pods)]
        hanging = [name for name in over if pods is not None and name in pods and runs(pods[name])]
        # A pod that hangs has no termination message yet. Its log says at which step it hangs.
        logs = self.logs([self.open[name][0] for name in hanging])
        for name in over:
            trial, since = self.open.pop(name)
            self.findings.append(self.verdict(trial, since, pods, logs.get(name, "")))
        self.cluster.delete(over)

    def is_over(self, name: tuple[str, str], since: float, pods: Pods | None) -> bool:
        """Returns whether a pod ended, was deleted, or cannot succeed. Unknown without the API server."""
        if pods is None:
            return False
        return name not in pods or ended(pods[name], self.events.get(name, []), self.age(since))

    def verdict(self, trial: Trial, since: float, pods: Pods | None, log: str) -> Finding:
        """Returns the finding for a finished trial."""
        if pods is None:
            return unasked(trial, "the API does not answer", "pai-install status")
        return judge(trial, pods.get(at(trial)), self.events.get(at(trial), []), log, self.age(since))

    def refresh(self, pods: Pods | None) -> None:
        """Asks for events, now and then, while pods wait, and once more when one ends without a word."""
        if pods is None or not self.open:
            return
        slow = {name[0] for name, (_trial, since) in self.open.items() if self.age(since) > SLOW_S}
        failed = {name[0] for name in self.open if text(child(pods.get(name), "status").get("phase")) == "Failed"}
        if failed or (slow and self.age(self.events_at) >= EVENTS_S):
            self.events.update(self.cluster.events(sorted(slow | failed)))
            self.events_at = time.monotonic()

    def logs(self, hanging: list[Trial]) -> dict[tuple[str, str], str]:
        """Returns the logs of hanging pods."""
        with concurrent.futures.ThreadPoolExecutor(max_workers=8) as pool:
            return dict(zip(map(at, hanging), pool.map(self.cluster.log, hanging)))

    @staticmethod
    def age(since: float) -> float:
        """Seconds."""
        return time.monotonic() - since


def at(trial: Trial) -> tuple[str, str]:
    """Namespace and name of its pod."""
    return trial.grant.namespace, trial.name


def key(entry: dict[str, Any]) -> tuple[str, str]:
    """Namespace and name of an object."""
    metadata = child(entry, "metadata")
    return text(metadata.get("namespace")), text(metadata.get("name"))


def runs(entry: dict[str, Any]) -> bool:
    """Whether its mount came and its containers have not ended."""
    return started(entry) and text(child(entry, "status").get("phase")) not in ENDED


def rejected_pod(trial: Trial, output: str) -> Finding:
    """No verdict: the API refused the pod."""
    lines = output.splitlines()
    own = next((line for line in lines if f'"{trial.name}"' in line), lines[-1] if lines else "")
    remedy = f"check the quota and the rules of namespace {trial.grant.namespace}"
    return unasked(trial, "the API does not take its pod", remedy, own)


def probe(cluster: Cluster, how: How, grants: list[Grant], workers: list[str], parallel: int) -> list[Finding]:
    """Every verdict."""
    # Pods of an interrupted run would hold their mounts, and count against the quota of the group.
    cluster.remove(OURS)
    try:
        nodes = {name: entry for (_none, name), entry in cluster.by_name("nodes").items()}
        claims = cluster.by_name("persistentvolumeclaims", "--all-namespaces")
    except KubectlError as error:
        remedy = "check journalctl --unit kubelet on a control plane"
        return [finding("api", "FAIL", "cluster", "the API does not answer", value=str(error)[-300:], remedy=remedy)]
    broken = {grant: found for grant in grants if (found := claim_problem(grant, claims))}
    wanted = trials([grant for grant in grants if grant not in broken], workers, how.run)
    absent = {trial: found for trial in wanted if (found := node_problem(trial, nodes))}
    try:
        tried = Probe(cluster, how, parallel).all([trial for trial in wanted if trial not in absent])
    finally:
        cluster.remove(cluster.mine)
    away = sorted({trial.worker for trial in absent})
    verdicts = [judge_node(name, node_facts(nodes[name]) if name in nodes else None, "") for name in away]
    return [*broken.values(), *verdicts, *absent.values(), *unstarted(tried), *tried]


def unstarted(tried: list[Finding]) -> list[Finding]:
    """A verdict on each worker of which a storage's could not be found."""
    first = {row["subject"]: row for row in reversed(tried) if row["verdict"] == "UNKNOWN"}
    message = "the test pod of a storage does not tell"
    return [
        finding("pod-start", "FAIL", name, message, value=row["message"], remedy=row["remedy"])
        for name, row in sorted(first.items())
    ]


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "grants": {"type": "list", "elements": "dict", "required": True},
            "workers": {"type": "list", "elements": "str", "required": True},
            "image": {"type": "str", "required": True},
            "mib": {"type": "int", "default": 16},
            "parallel": {"type": "int", "default": 20},
            "timeout": {"type": "int", "default": 150},
            "kubectl": {"type": "path", "default": KUBECTL},
        },
        supports_check_mode=True,
    )
    if module.check_mode:
        module.exit_json(changed=False, findings=[])
    given = module.params
    run = secrets.token_hex(4)
    how = How(run, given["image"], max(1, min(MAX_MIB, given["mib"])), given["timeout"])
    grants = [Grant(**grant) for grant in given["grants"]]
    cluster = Cluster(Kubectl(program=given["kubectl"]), run)
    findings = probe(cluster, how, grants, given["workers"], max(1, given["parallel"]))
    module.exit_json(changed=False, findings=findings)


if __name__ == "__main__":
    main()
