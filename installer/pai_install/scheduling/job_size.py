"""How many pods a job of a virtual cluster may have: admission policies, the same for every scheduler. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pai_install.scheduling.admission import Object, RequestKind, Rule, clusters_at, in_force, literal, policy
from pai_install.scheduling.job_kinds import KINDS, JobKind, pods_of
from pai_install.scheduling.job_queue import CLUSTER_LABEL
from pai_install.scheduling.model import Scheduling
from pai_install.scheduling.pod_limits import MAX_PODS

# controllers make parts of jobs that were checked as a whole, and users cannot pretend to be one (users/job_rules.py)
_WHOLE = {
    "a-whole-job": "!has(object.metadata.ownerReferences) || "
    "object.metadata.ownerReferences.all(o, !has(o.controller) || !o.controller)"
}


def size_policies(scheduling: Scheduling) -> Iterator[Object]:
    """Yields a policy for each kind of jobs, and nothing where no virtual cluster has a limit."""
    limits = {
        namespace: {cluster.name: cluster.pods_per_job or MAX_PODS for cluster in clusters}
        for namespace, clusters in clusters_at(scheduling).items()
        # Sites without a limit have no policy, so nothing is evaluated for their jobs.
        if any(cluster.pods_per_job for cluster in clusters)
    }
    for kind in KINDS if limits else ():
        if not kind.brought or scheduling.backend in kind.brought:
            yield from in_force(_policy(kind, limits), limits)


def _policy(kind: JobKind, limits: Mapping[str, Mapping[str, int]]) -> Object:
    label = f"object.metadata[?'labels'].orValue({{}})[?{literal(CLUSTER_LABEL)}].orValue('')"
    # a job may leave out the label: then it is of any virtual cluster of its group
    least = literal({namespace: min(found.values()) for namespace, found in limits.items()})
    variables = {
        "most": f"{literal(limits)}[request.namespace][?{label}].orValue({least}[request.namespace])",
    }
    rule = Rule(
        f"!has(object.spec) || {pods_of(kind)} <= variables.most",
        "'a job of this virtual cluster has at most ' + string(variables.most) + ' pods: use fewer and larger pods'",
    )
    version = "*" if "." in kind.group else kind.version
    name = f"pai-pods-per-job-{kind.resource}" + (f".{kind.group}" if kind.group else "")
    return policy(name, RequestKind(kind.group, version, kind.resource), (rule,), variables, _WHOLE)
