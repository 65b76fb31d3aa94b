"""Jobs of the scheduler that goes, and the site's file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.cluster.client import ApiError, Select
from pai_install.errors import ExitCode, PaiError
from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject
from pai_install.run.scheduler_switch import END_S, end_jobs, jobs_in, scheduler_switch, scheduler_text
from tests.errors import raises
from tests.unit.cli.stub_environment import write_site
from tests.unit.cluster.fake import FakeCluster
from tests.unit.schedulers.test_job_inventory import workload

RUNS = workload("job-a-1", ("Job", "batch/v1", "a"), "QuotaReserved")
ENDED = workload("job-b-1", ("Job", "batch/v1", "b"), "Finished")
# with everything that an edit must keep
SERVICES = "# ours\nscheduler:\n  type: kueue  # since May\nvirtual-clusters:\n  - {name: default, quota: []}\n"


class Kueue(FakeCluster):
    """A cluster in which a Workload goes with its job."""

    def delete(self, refs: Sequence[Ref], *, wait_s: float = 0) -> None:
        super().delete(refs, wait_s=wait_s)
        if Ref("job.batch", "a", "vision") in refs:
            self.objects.pop(Ref("workload", "job-a-1", "vision"), None)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds


def deleted(cluster: FakeCluster) -> list[str]:
    return [str(ref) for what, refs in cluster.calls if what == "delete" for ref in refs]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = write_site(tmp_path / "cluster")
    (folder / "services-configuration.yaml").write_text(SERVICES)
    return folder


def test_jobs_that_have_not_ended_are_refused_and_nothing_goes(snapshot: SnapshotAssertion) -> None:
    cluster = Kueue.of(RUNS, ENDED)
    with raises("scheduler-jobs-running", "1") as caught:
        end_jobs(cluster, "kueue", (), force=False)
    assert caught.value.details == snapshot
    assert caught.value.exit_code == ExitCode.PREFLIGHT_FAILED
    assert deleted(cluster) == []


def test_what_is_left_of_jobs_that_ended_goes() -> None:
    cluster, clock = Kueue.of(ENDED), Clock()
    end_jobs(cluster, "kueue", (), force=False, clock=clock, pause=clock.pause)
    assert deleted(cluster) == ["workload.kueue.x-k8s.io/job-b-1 in vision"]


def test_force_ends_jobs_and_waits_until_they_are_gone() -> None:
    cluster, clock = Kueue.of(RUNS, ENDED), Clock()
    end_jobs(cluster, "kueue", (), force=True, clock=clock, pause=clock.pause)
    assert deleted(cluster) == ["job.batch/a in vision", "workload.kueue.x-k8s.io/job-b-1 in vision"]
    assert cluster.objects == {}


def test_what_does_not_go_ends_the_switch() -> None:
    cluster, clock = FakeCluster.of(RUNS), Clock()  # nothing takes its Workload away
    with pytest.raises(PaiError, match=f"within {END_S:g} s") as caught:
        end_jobs(cluster, "kueue", (), force=True, clock=clock, pause=clock.pause)
    assert "vision/a" in caught.value.details
    assert deleted(cluster) == ["job.batch/a in vision"], "told once"


def test_kinds_that_are_gone_have_no_jobs() -> None:
    """As after a switch that was interrupted."""

    class Without(FakeCluster):
        reason = "NoSuchKind"

        def list(self, *selects: Select) -> tuple[tuple[JsonObject, ...], ...]:
            raise ApiError(f"the server doesn't have a resource type: {selects}", reason=self.reason)

    assert jobs_in(Without(), "kueue", ()) == ()
    Without.reason = "Forbidden"
    with raises("api-request-refused", kind=ApiError):
        jobs_in(Without(), "kueue", ())


def test_the_file_says_so_when_no_job_is_left_and_not_before(site: Path) -> None:
    arguments: dict[str, Any] = {"before": "kueue", "to": "volcano", "force": False, "edits": True, "devices": []}
    path = site / "services-configuration.yaml"
    path.write_text(SERVICES.replace("quota: []", "quota: [{sku: cpu, machines: 1}]"))
    before = path.read_text()
    with raises("scheduler-jobs-running"):
        scheduler_switch(Kueue.of(RUNS), site)(("master",), arguments)
    assert path.read_text() == before
    work = scheduler_switch(Kueue(), site)
    assert work(("master",), arguments) == ()
    assert path.read_text() == before.replace("type: kueue", "type: volcano")
    written = path.stat().st_mtime_ns
    work(("master",), arguments)
    assert path.stat().st_mtime_ns == written, "what it says already is not written"


def test_a_file_without_the_section_gets_it(site: Path) -> None:
    assert scheduler_text(site, "", "kueue") == "scheduler:\n  type: kueue\n"
    assert scheduler_text(site, "# mine\n", "kueue").startswith("# mine\n")


def test_what_would_be_invalid_or_cannot_be_edited_is_told(site: Path) -> None:
    with raises("edited-site-invalid") as caught:
        scheduler_text(site, SERVICES.replace("name: default", "name: Default!"), "volcano")
    assert caught.value.exit_code == ExitCode.SITE_INVALID
    with raises("site-file-not-editable"):
        scheduler_text(site, "x: &kept {type: kueue}\nscheduler: *kept\n", "volcano")
