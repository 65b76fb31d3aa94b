"""Five tasks of docs/console.md in Chromium, done by the words of the pages."""

from __future__ import annotations

import time
from threading import Thread
from typing import Any

import pytest

from pai_install.profile.project import profile_of
from pai_install.schedulers.kueue.compile import flavor_name
from tests.addons import ROOT
from tests.integration.browser.driver import driven, person
from tests.integration.browser.machine import is_there, patch, start_node
from tests.integration.control_plane import Api, Json
from tests.integration.openpai.conftest import Console, Installed, console, quickstart
from tests.ports import free_port
from tests.unit.console.pages.cluster import GPU, measured, running_pod, workload

__all__ = ["console", "quickstart"]
JOB = "my-first"
KUEUE = "/apis/kueue.x-k8s.io/v1beta2"


def notebook(console: Console) -> None:
    """A notebook of bob that holds the whole quota, and that no one uses."""
    text = (ROOT / "examples/notebook/notebook.yaml").read_text()
    status, answer = console.ask("POST", "/api/v2/jobs", console.token("bob"), text, "text/yaml")
    assert status == 202, answer
    job, admin = "notebook", console.admin
    own = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "controller": True}
    own["uid"] = admin.ask("GET", f"/apis/batch/v1/namespaces/team/jobs/{job}")["metadata"]["uid"]
    pod = running_pod(job, "team", "bob", "worker-1", measured(0, 3 * 86400, 41))
    labels = {"pai-install/user": "bob", "batch.kubernetes.io/job-name": job, "job-name": job}
    pod["metadata"] = {"name": f"{job}-abcde", "namespace": "team", "labels": labels, "ownerReferences": [own]}
    pod["spec"]["containers"][0]["image"] = "none"
    now = {**pod.pop("status")}
    now["containerStatuses"] = [{**it, "image": "none", "imageID": "none"} for it in now["containerStatuses"]]
    admin.apply(pod)
    patch(admin, f"/api/v1/namespaces/team/pods/{job}-abcde/status", {"status": now})
    counted(admin, job, 16, reserved=True, owner=own)


def counted(admin: Api, job: str, gpus: int, *, reserved: bool, owner: Json | None = None) -> None:
    """What Kueue keeps of a job."""
    item = workload(job, "team", "default", gpus, reserved=reserved)
    uid = (
        "0"
        if owner
        else admin.ask("GET", f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/team/jobsets/{job}")["metadata"]["uid"]
    )
    whole = owner or {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "name": job,
        "controller": True,
        "uid": uid,
    }
    item["metadata"] = {"name": item["metadata"]["name"], "namespace": "team", "ownerReferences": [whole]}
    admin.apply({**item, "apiVersion": "kueue.x-k8s.io/v1beta2"})


def waits(admin: Api) -> None:
    """The scheduler looks at the new job."""
    end = time.monotonic() + 200
    while not is_there(admin, JOB, "team") and time.monotonic() < end:
        time.sleep(0.3)
    counted(admin, JOB, 2, reserved=False)


@pytest.fixture(scope="module")
def seen(quickstart: Installed, console: Console, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the browser found."""
    admin = console.admin
    start_node(admin, free_port())
    admin.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker-2"}})
    silent = {"type": "Ready", "status": "Unknown", "message": "Kubelet stopped posting node status."}
    patch(admin, "/api/v1/nodes/worker-2/status", {"status": {"allocatable": {GPU: "8"}, "conditions": [silent]}})
    flavor = flavor_name(profile_of(quickstart.site).require_scheduling(), "gpu")
    used = [{"name": flavor, "resources": [{"name": GPU, "total": "16"}]}]
    patch(admin, f"{KUEUE}/clusterqueues/default", {"status": {"flavorsReservation": used}})
    notebook(console)
    Thread(target=waits, args=(admin,), daemon=True).start()
    people = {
        "member": person("alice", console.password("alice")),
        "administrator": person("root", console.password("root")),
    }
    found = driven("tasks.js", {"url": console.url, "job": JOB, **people}, tmp_path_factory.mktemp("home"), 200)
    return {**found["texts"], "violations": found["violations"], "wide": found["wide"]}


def test_a_template_is_submitted(seen: Any) -> None:
    assert "What will happen" in seen["checked"]
    assert "WAITING" in seen["submitted"]


def test_a_waiting_job_says_why(seen: Any) -> None:
    assert "Holders of this quota" in seen["why"]
    assert "16" in seen["why"]
    for word in ("bob", "16", "idle"):
        assert word in seen["holder"], seen["holder"]


def test_the_page_of_a_waiting_job_is_accessible(seen: Any) -> None:
    assert (seen["violations"], seen["wide"]) == ([], [])


def test_an_idle_notebook_has_an_owner_and_a_button(seen: Any) -> None:
    for word in ("bob", "no one uses this job"):
        assert word in seen["idle"], seen["idle"]
    assert "STOP" in seen["stopped"]


def test_a_user_is_added_changes_the_password_and_is_removed(seen: Any) -> None:
    assert "dora" in seen["added"]
    assert "Home" in seen["dora"]
    assert "dora" not in seen["removed"]


def test_a_sick_node_says_what_to_do(seen: Any) -> None:
    assert "FAIL" in seen["health"]
    assert "Ready" in seen["node"]
