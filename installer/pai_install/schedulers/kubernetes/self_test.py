"""The self-test's quotas and jobs for the scheduler that every cluster has. Pure."""

from __future__ import annotations

from pai_install.schedulers.self_test.driver import SelfTestDriver
from pai_install.schedulers.self_test.model import Gang, Scenario
from pai_install.schedulers.self_test.objects import JsonObject, SelfTestContext, amount, job_spec, meta

JOBS = ("jobs.batch",)


def queues(context: SelfTestContext, scenario: Scenario) -> tuple[JsonObject, ...]:
    """A ResourceQuota of the namespace, where the scenario is about one."""
    if len(scenario.queues) != 1 or scenario.name not in ("quota", "cores"):
        return ()
    hard = {f"requests.{scenario.resource}": amount(scenario, scenario.queues[0].most)}
    metadata = meta(context, "only", scenario.namespace)
    return ({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}},)


def gang_objects(context: SelfTestContext, scenario: Scenario, gang: Gang) -> tuple[JsonObject, ...]:
    """A batch Job for each role."""
    return tuple(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": meta(context, _name(gang, number), scenario.namespace, gang.name),
            "spec": job_spec(context, scenario, gang, pods),
        }
        for number, pods in enumerate(gang.tasks)
    )


def _name(gang: Gang, role: int) -> str:
    return gang.name if len(gang.tasks) == 1 else f"{gang.name}-{role}"


_ONE_BY_ONE = "kube-scheduler places pod by pod and knows no gang"
_NO_LENDING = "a ResourceQuota is a limit: what it does not use is lost"
_UNSUPPORTED = {
    **dict.fromkeys((f"scheduler-{name}" for name in ("gang", "deadlock", "oversize", "requeue")), _ONE_BY_ONE),
    **dict.fromkeys(("scheduler-borrow", "scheduler-reclaim"), _NO_LENDING),
    "scheduler-down": "kube-scheduler is the system's own",
}
DRIVER = SelfTestDriver(JOBS, gang_objects, queues, unsupported=_UNSUPPORTED)
