"""One job beside the quotas: which of six answers it gets, whatever the scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from pai_install.profile.project import profile_of
from pai_install.schedulers.registry import backend_of
from pai_install.schedulers.simulation import Outcome, Simulation, simulate
from pai_install.schedulers.usage import Usage
from pai_install.scheduling.job_request import read_job_request
from pai_install.scheduling.model import Backend
from pai_install.scheduling.usage.model import UnfinishedJob, Use
from pai_install.site.load import load_site
from tests.unit.scheduling.test_read import VALID
from tests.unit.site.rules.scheduling.sites import GROUPS, LAYOUT
from tests.unit.site.sites import write_site

GPU = "nvidia.com/gpu"
# research is guaranteed 8 devices and the 8 of g3, default 8; research borrows up to 16
IDLE: Mapping[tuple[str, str], Use] = {}


def job(pods: int, devices: int, priority: str = "test", cluster: str = "research", **resources: Any) -> str:
    """A JobSet; with HiveD its pods ask for cells."""
    labels = {"kueue.x-k8s.io/queue-name": cluster, "kueue.x-k8s.io/priority-class": priority}
    limits = {GPU: devices, **resources} if devices else resources
    pod = {"spec": {"containers": [{"name": "c", "resources": {"limits": limits}}]}}
    template = {"spec": {"parallelism": pods, "completions": pods, "template": pod}}
    return yaml.safe_dump(
        {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "metadata": {"name": "train", "namespace": "admins", "labels": labels},
            "spec": {"replicatedJobs": [{"name": "worker", "replicas": 1, "template": template}]},
        }
    )


def judged(
    folder: Path,
    content: str,
    uses: Mapping[tuple[str, str], Use] = IDLE,
    *jobs: UnfinishedJob,
    backend: Backend = "kueue",
) -> Simulation:
    """In the site of `test_read`."""
    profile = profile_of(load_site(write_site(folder, layout=LAYOUT, services=VALID + GROUPS)).site)
    scheduling = replace(profile.require_scheduling(), backend=backend)
    usage = Usage(uses, {}, jobs, frozenset(), ())
    profile = profile.model_copy(update={"scheduling": scheduling})
    return simulate(profile, backend_of(backend).rules, usage, read_job_request(content))


def used(cluster: str, units: int, own: int = 0, borrowed: int = 0) -> dict[tuple[str, str], Use]:
    return {(cluster, "a100"): Use(cluster, "a100", units, own, borrowed)}


LOW, SAME = (UnfinishedJob("research", "admins/other", waits=False, units={GPU: 16}, priority=it) for it in (-1, 10))


@pytest.mark.parametrize(
    ("content", "uses", "running", "outcome"),
    [
        (job(2, 8), IDLE, (), "fits"),
        (job(3, 8), IDLE, (), "borrows"),
        # what it lends is borrowed by another
        (job(2, 8), used("default", 16, borrowed=8), (), "preempts"),
        (job(1, 8), used("research", 16, own=8), (LOW,), "borrows"),
        (job(2, 8), {**used("research", 16, own=8), **used("default", 8)}, (LOW,), "preempts"),
        (job(2, 8), {**used("research", 16, own=8), **used("default", 8)}, (SAME,), "waits"),
        (job(4, 8), IDLE, (), "never"),
        (job(1, 9), IDLE, (), "never"),
        (job(1, 1, memory="2000Gi"), IDLE, (), "never"),
        (job(1, 8, cluster="reserch"), IDLE, (), "refused"),
        (job(1, 8, priority="crit"), IDLE, (), "refused"),
        (job(1, 0, cpu="4"), IDLE, (), "fits"),
    ],
)
def test_answers(tmp_path: Path, content: str, uses: Any, running: tuple[UnfinishedJob, ...], outcome: Outcome) -> None:
    found = judged(tmp_path, content, uses, *running)
    assert found.outcome == outcome
    assert bool(found.quotas) == (outcome not in ("never", "refused"))


@pytest.mark.parametrize(
    ("backend", "outcome"), [("kueue", "borrows"), ("volcano", "refused"), ("default", "never"), ("hived", "never")]
)
def test_what_a_scheduler_does_not_lend_is_not_borrowed(tmp_path: Path, backend: Backend, outcome: Outcome) -> None:
    assert judged(tmp_path, job(3, 8), backend=backend).outcome == outcome


def test_oppo_has_no_guarantee_with_hived_and_takes_what_is_idle(tmp_path: Path) -> None:
    content = job(1, 8, priority="oppo")
    assert judged(tmp_path, content, backend="hived").outcome == "fits", "of machines of its own"
    assert judged(tmp_path, content, used("research", 8, own=8), backend="hived").outcome == "borrows"


def test_full_limit_waits_and_names_the_holders(tmp_path: Path) -> None:
    holder = UnfinishedJob("default", "vision/sweep", waits=False, units={GPU: 8})
    waiting = UnfinishedJob("default", "vision/later", waits=True, units={GPU: 8})
    uses = {**used("research", 16, own=8), **used("default", 8)}
    found = judged(tmp_path, job(1, 8), uses, SAME, holder, waiting)
    assert found.outcome == "waits"
    assert [it.name for it in found.holders] == ["admins/other", "vision/sweep"]
    (quota,) = found.quotas
    assert (quota.sku, quota.requested, quota.guaranteed, quota.used, quota.idle) == ("a100", 8, 16, 16, 0)


def test_a_job_that_names_no_queue_gets_the_defaults_of_its_namespace(tmp_path: Path) -> None:
    content = "{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {containers: [{name: c}]}}}}"
    found = judged(tmp_path, content)
    assert (found.outcome, found.request.queue.cluster) == ("refused", "")
