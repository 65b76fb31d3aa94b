"""HiveD's feature demo in the lab: five machines of four devices, real HiveD, jobs by `job submit`.

PAI_HIVED names HiveD's program, built as docs/decisions/010 says. PAI_RECORD names a file for what was seen, which
tests/unit/schedulers/hived/test_demo_replay.py replays.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.hived_program import NEEDS_HIVED, PROGRAM
from tests.hived_scenarios import (
    FIVE,
    FOUR,
    GROUP,
    MACHINES,
    ONE,
    THREE,
    TWO,
    DemoJob,
    DemoRole,
    groups_of_machines,
    job,
    services_of,
    two_types,
)

from .conftest import KEPT, Cluster, equip, machines, until
from .hived_image import write_image
from .test_examples import CORES, POLICY
from .test_jobs import IMAGE, METHOD, WORKERS, python_image, shown
from .test_jobs import job as job_verb
from .test_scheduler import create

RECORD = os.environ.get("PAI_RECORD", "")
pytestmark = [
    pytest.mark.lab,
    pytest.mark.soak,
    NEEDS_HIVED,
]
SUBNET = "172.30.92"
SPEC = "hivedscheduler.microsoft.com/pod-scheduling-spec"
DEVICES = "hivedscheduler.microsoft.com/pod-leaf-cell-isolation"
# a pod that HiveD placed, in the form of a recorded run: its machine and its devices
Place = tuple[str, str]


@dataclass
class Demo:
    """The lab, and what happened so far in this scenario."""

    cluster: Cluster
    folder: Path
    events: list[dict[str, Any]] = field(default_factory=list)
    block: str = ""

    def use(self, block: str) -> None:
        """The site has this block, and the cluster heeds it."""
        if block != self.block:
            (self.cluster.site / "services-configuration.yaml").write_text(services_of(block))
            done = self.cluster.run("vc", "apply", "--yes", "--force")
            assert done.returncode == 0, done.stdout + done.stderr
            self.block = block
        self.events.append({"use": block})

    def submit(self, one: DemoJob) -> str:
        """Submits a job. Returns the code of the refusal, or an empty text."""
        path = self.folder / f"{one.name}.yaml"
        path.write_text(one.text(IMAGE))
        done = job_verb(self.cluster, "submit", str(path), "--group", GROUP, "--user", "alice")
        code = done.stderr.partition("code: ")[2].partition("\n")[0].strip() if done.returncode else ""
        assert bool(code) == bool(done.returncode), done.stderr
        specs = {name: pod["metadata"]["annotations"][SPEC] for name, pod in sorted(self.pods(one.name).items())}
        self.events.append({"submit": one.text(IMAGE), "refused": code, "specs": specs})
        return code

    def pods(self, name: str) -> dict[str, dict[str, Any]]:
        """Role and index -> pod of a job."""
        words = (f"--namespace={GROUP}", f"--selector=jobset.sigs.k8s.io/jobset-name={name}", "--output=json")
        found = json.loads(self.cluster.kubectl("get", "pods", *words))["items"]
        role, index = "jobset.sigs.k8s.io/replicatedjob-name", "batch.kubernetes.io/job-completion-index"
        return {
            f"{pod['metadata']['labels'][role]}-{pod['metadata']['labels'][index]}": pod
            for pod in found
            if "deletionTimestamp" not in pod["metadata"]
        }

    def places(self, name: str) -> dict[str, Place]:
        """Role and index -> place, of pods that run."""
        return {
            key: (pod["spec"]["nodeName"], pod["metadata"]["annotations"].get(DEVICES, ""))
            for key, pod in sorted(self.pods(name).items())
            if pod["status"]["phase"] == "Running"
        }

    def settles(self, *wanted: tuple[str, int], seconds: float = 120) -> dict[str, dict[str, Place]]:
        """Waits until exactly so many pods of each job run. Returns their places."""
        names = [name for name, _count in wanted]
        held = until(lambda: all(len(self.places(name)) == count for name, count in wanted), seconds)
        found = {name: self.places(name) for name in names}
        assert held, json.dumps([wanted, found, self.pods(names[0])], indent=1)[:6000]
        self.events.append({"runs": found})
        return found

    def uids(self, name: str) -> set[str]:
        return {pod["metadata"]["uid"] for pod in self.pods(name).values()}

    def gave_way(self, name: str) -> list[dict[str, str]]:
        """The preemptions that `job show` tells."""
        return list(shown(self.cluster, name).get("preemptions", ()))

    def stop_all(self) -> None:
        self.cluster.ask("delete", "jobsets", "--all", f"--namespace={GROUP}", "--timeout=60s")
        self.cluster.ask("delete", "pods", "--all", f"--namespace={GROUP}", "--grace-period=1", "--timeout=60s")


def widened(text: str) -> str:
    """layout.yaml with five workers of four devices, which say that they have more cores than they do."""
    head, _workers = text.split("machine-list:", 1)
    rows = "".join(
        f"  - {{hostname: {name}, hostip: {SUBNET}.{12 + number}, machine-type: lab-gpu, pai-worker: 'true'}}\n"
        for number, name in enumerate(MACHINES)
    )
    master = f"  - {{hostname: lab-master, hostip: {SUBNET}.11, machine-type: lab-master, pai-master: 'true'}}\n"
    return f"{head.replace('count: 8', 'count: 4')}machine-list:\n{master}{rows}"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Six machines with HiveD. PAI_LAB_SITE may name a site of the same machines, which stays."""
    if KEPT:
        cluster = Cluster(Path(KEPT), subprocess.CompletedProcess([], 0, "", ""))
        prepare(cluster)
        yield cluster
        return
    folder = tmp_path_factory.mktemp("demo")
    image = folder / "hived.tar"
    write_image(Path(PROGRAM), image)
    settings = f"\ncomponent_images: {{hivedscheduler: {image}}}\n"
    with machines(folder, SUBNET, settings=settings, layout=widened) as cluster:
        (cluster.site / "services-configuration.yaml").write_text(services_of(groups_of_machines()))
        equip(cluster.site)
        report = cluster.converge()
        assert report["ok"], report["stderr"]
        prepare(cluster)
        yield cluster


def prepare(cluster: Cluster) -> None:
    """Machines say that they have more cores, and have the image of the jobs."""
    create(cluster, *POLICY)
    for worker in MACHINES:
        cluster.on(worker, python_image())
    where = "--output=jsonpath={.items[*].status.allocatable.cpu}"
    # a kubelet reports after five minutes at the latest
    assert until(lambda: cluster.kubectl("get", "nodes", where).split().count(CORES) >= len(MACHINES), 330)


# a record may be continued
SEEN: dict[str, list[dict[str, Any]]] = json.loads(Path(RECORD).read_text()) if RECORD and Path(RECORD).exists() else {}


@pytest.fixture
def demo(lab: Cluster, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Demo]:
    """A scenario, without jobs before and after."""
    made = Demo(lab, tmp_path)
    yield made
    made.stop_all()
    SEEN[request.node.name] = made.events
    if RECORD:
        Path(RECORD).write_text(json.dumps(SEEN, indent=1, sort_keys=True) + "\n")


def machines_of(places: dict[str, Place]) -> set[str]:
    return {machine for machine, _devices in places.values()}


def is_pair(places: dict[str, Place]) -> bool:
    """Whether two single devices are one pair of a machine."""
    devices = sorted(int(devices) for _machine, devices in places.values())
    return len(machines_of(places)) == 1 and devices in ([0, 1], [2, 3])


def test_jobs_of_a_virtual_cluster_stay_on_its_machine(demo: Demo) -> None:
    demo.use(groups_of_machines())
    for name in ("first", "second"):
        assert demo.submit(job(name, 2)) == ""
    found = demo.settles(("first", 2), ("second", 2))
    both = machines_of(found["first"]) | machines_of(found["second"])
    assert len(both) == 1
    assert both < {ONE, THREE}


def test_pinned_cell_is_for_jobs_that_name_it(demo: Demo) -> None:
    demo.use(groups_of_machines())
    roles = {"other": DemoRole(4, sku="K80", group="a"), "own": DemoRole(4, pin="OWN", group="b")}
    assert demo.submit(DemoJob("pin", roles=roles)) == ""
    places = demo.settles(("pin", 8))["pin"]
    assert {place[0] for name, place in places.items() if name.startswith("own")} == {TWO}
    assert TWO not in {place[0] for name, place in places.items() if name.startswith("other")}


def test_pair_of_devices_goes_to_a_job_of_two(demo: Demo) -> None:
    demo.use(groups_of_machines())
    assert demo.submit(job("buddy", 2, cluster="vc2")) == ""
    assert is_pair(demo.settles(("buddy", 2))["buddy"])


def test_distributed_training_succeeds(demo: Demo) -> None:
    demo.use(groups_of_machines())
    index = "--task_index=$PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"
    method = f"{METHOD.format(0)} {WORKERS} {index}"
    roles = {
        "ps_server": DemoRole(1, command=f"{method} --job_name=ps"),
        "worker": DemoRole(2, command=f"{method} --job_name=worker"),
    }
    assert demo.submit(DemoJob("trains", cluster="vc2", roles=roles)) == ""
    assert until(lambda: shown(demo.cluster, "trains")["state"] == "SUCCEEDED", 180), shown(demo.cluster, "trains")


def test_job_without_a_gang_runs_in_part(demo: Demo) -> None:
    demo.use(groups_of_machines())
    assert demo.submit(job("elastic", 6, gang=False)) == ""
    assert len(machines_of(demo.settles(("elastic", 4))["elastic"])) == 1, "guaranteed jobs use no more than their own"


def test_opportunistic_job_uses_more_than_its_virtual_cluster_has(demo: Demo) -> None:
    demo.use(groups_of_machines())
    assert demo.submit(job("oppo", 6, gang=False, priority="oppo")) == ""
    assert len(machines_of(demo.settles(("oppo", 6))["oppo"])) > 1


def test_device_type_of_a_job_limits_it(demo: Demo) -> None:
    demo.use(two_types())
    assert demo.submit(job("typed", 6, gang=False)) == ""
    assert machines_of(demo.settles(("typed", 4))["typed"]) < {ONE, TWO, THREE, FOUR}


def test_job_without_a_device_type_takes_all_types(demo: Demo) -> None:
    demo.use(two_types())
    assert demo.submit(job("any", 6, sku="", gang=False)) == ""
    found = machines_of(demo.settles(("any", 6))["any"])
    assert FIVE in found
    assert len(found) == 2


def test_gang_that_never_fits_is_refused_and_blocks_no_other(demo: Demo) -> None:
    demo.use(two_types())
    assert demo.submit(job("large", 6)) == "job-file-invalid"
    assert demo.submit(job("whole", 4)) == ""
    assert len(machines_of(demo.settles(("whole", 4))["whole"])) == 1


def test_nearest_devices_are_chosen(demo: Demo) -> None:
    demo.use(two_types())
    assert demo.submit(job("near", 2)) == ""
    assert is_pair(demo.settles(("near", 2))["near"])


def test_more_important_job_takes_devices_at_once(demo: Demo) -> None:
    demo.use(two_types(default=3))
    assert demo.submit(job("less", 1, 4, "M60", priority="test")) == ""
    demo.settles(("less", 1))
    assert demo.submit(job("more", 1, 4, "M60")) == ""
    demo.settles(("more", 1), ("less", 0))
    assert until(lambda: shown(demo.cluster, "less")["state"] == "WAITING", 30)
    assert until(lambda: [one["by"] for one in demo.gave_way("less")] == [f"{GROUP}/more"], 30), demo.gave_way("less")
    demo.cluster.kubectl("delete", "jobset", "more", f"--namespace={GROUP}")
    demo.settles(("less", 1))


def test_lazy_preemption_takes_devices_when_they_are_needed(demo: Demo) -> None:
    demo.use(two_types(default=3))
    assert demo.submit(job("lazy", 1, 4, priority="test", lazy=True)) == ""
    demo.settles(("lazy", 1))
    assert demo.submit(job("more", 1, 4)) == ""
    demo.settles(("lazy", 1), ("more", 1))
    assert demo.submit(job("rest", 3, 4, cluster="default")) == ""
    demo.settles(("rest", 3), ("lazy", 0), ("more", 1))


def test_guaranteed_job_takes_devices_of_an_opportunistic_one(demo: Demo) -> None:
    demo.use(two_types(default=3))
    assert demo.submit(job("guest", 2, 4, priority="oppo")) == ""
    demo.settles(("guest", 2))
    assert demo.submit(job("owner", 3, 4, cluster="default")) == ""
    demo.settles(("owner", 3), ("guest", 0))


def keeps(demo: Demo, one: DemoJob, count: int, after: str) -> None:
    """A job runs on through a change of the block."""
    assert demo.submit(one) == ""
    before = demo.settles((one.name, count))
    uids = demo.uids(one.name)
    demo.use(after)
    assert demo.settles((one.name, count)) == before
    assert demo.uids(one.name) >= {*uids} if count == len(uids) else demo.uids(one.name) == uids


def test_job_survives_the_removal_of_its_device_type(demo: Demo) -> None:
    demo.use(two_types())
    keeps(demo, job("keeps", 1, 4, "M60", priority="test"), 1, two_types(new=()))


def test_job_survives_a_new_device_type(demo: Demo) -> None:
    demo.use(two_types(new=()))
    keeps(demo, job("keeps", 6, gang=False), 4, two_types())
    assert demo.submit(job("waits", 1)) == ""
    demo.settles(("keeps", 4), ("waits", 0), seconds=5)


def test_job_survives_a_new_machine(demo: Demo) -> None:
    demo.use(two_types(old=(ONE, TWO, THREE), default=1))
    keeps(
        demo,
        job("keeps", 1, 4, "M60", priority="test"),
        1,
        two_types(old=(ONE, TWO, THREE), new=(FIVE, FOUR), default=1),
    )
    assert demo.submit(job("waits", 2, 4, "M60", priority="test")) == ""
    demo.settles(("keeps", 1), ("waits", 0), seconds=5)


def test_job_survives_the_removal_of_a_machine(demo: Demo) -> None:
    demo.use(two_types())
    assert demo.submit(job("keeps", 2, 4, cluster="default", priority="test")) == ""
    places, uids = demo.settles(("keeps", 2)), demo.uids("keeps")
    gone = min(machines_of(places["keeps"]))
    demo.use(two_types(old=tuple(one for one in (ONE, TWO, THREE, FOUR) if one != gone), default=1))
    assert demo.settles(("keeps", 2)) == places
    assert demo.uids("keeps") == uids


@pytest.mark.parametrize(("vc1", "default"), [(4, 0), (3, 1)], ids=["removed", "smaller"])
def test_job_survives_the_change_of_its_virtual_cluster_until_others_need_it(
    demo: Demo, vc1: int, default: int
) -> None:
    demo.use(two_types())
    keeps(demo, job("keeps", 2, 4, cluster="default", priority="test"), 2, two_types(vc1=vc1, default=default))
    assert demo.submit(job("takes", vc1, 4, priority="test")) == ""
    demo.settles(("takes", vc1), ("keeps", 0))


def test_bad_machine_gets_no_job_until_it_is_back(demo: Demo) -> None:
    demo.use(two_types())
    demo.cluster.on(FIVE, "systemctl stop kubelet")
    try:
        assert until(lambda: ready(demo.cluster) == "Unknown", 120)
        assert demo.submit(job("waits", 1, 1, "M60")) == ""
        demo.settles(("waits", 0), seconds=5)
    finally:
        demo.cluster.on(FIVE, "systemctl start kubelet")
    demo.settles(("waits", 1))
    assert shown(demo.cluster, "waits")["retries"] == 0


def test_filters_of_kubernetes_count_for_hived(demo: Demo) -> None:
    """The demo takes a label away from the only machine of a type. A taint is another filter."""
    demo.use(two_types())
    taint = "pai.test/away=yes:NoSchedule"
    demo.cluster.kubectl("taint", "node", FIVE, taint)
    try:
        assert demo.submit(job("waits", 1, 1, "M60")) == ""
        demo.settles(("waits", 0), seconds=5)
    finally:
        demo.cluster.kubectl("taint", "node", FIVE, f"{taint}-")
    demo.settles(("waits", 1))
    assert shown(demo.cluster, "waits")["retries"] == 0


def ready(cluster: Cluster) -> str:
    """What the node of the last machine says."""
    return cluster.kubectl("get", "node", FIVE, "--output=jsonpath={.status.conditions[?(@.type=='Ready')].status}")
