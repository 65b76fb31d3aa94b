"""The ledger of GPU hours before a real API server, with the recorder's own token and on two control planes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from pai_install.agents.common.api import Client
from pai_install.agents.common.ledger import Hold, Ledger, merged, read
from pai_install.agents.job_recorder.bookkeeper import Bookkeeper
from pai_install.agents.job_recorder.ledger_files import LedgerFiles
from pai_install.agents.job_recorder.settings import Settings
from pai_install.agents.job_recorder.store import Rules
from tests.integration.control_plane import Api, Json
from tests.integration.users.conftest import NAMESPACES, Users
from tests.integration.users.test_recorder import MERGE, RESOURCES, recorder_api
from tests.integration.users.test_rights import job, pod, ready, template
from tests.waiting import until

__all__ = ["recorder_api"]


class Keeping:
    """A bookkeeper in a thread, as each control plane has it. folder: its files."""

    def __init__(self, client: Client, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.said: list[str] = []
        rules = Rules(7, 500, 1000, frozenset(NAMESPACES), frozenset((*RESOURCES, "pods")))
        found = Settings(client.access().url, RESOURCES, rules, {}, 13, reads_kueue=True)
        self.keeper = Bookkeeper(client, found, LedgerFiles(folder, 13), self.said.append)
        self.keeper.recall()
        self.keeper.watch()
        self._end = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._end:
            self.keeper.step(0.2)

    def end(self) -> None:
        """As when it is killed."""
        self._end = True
        self._thread.join(60)
        assert not self._thread.is_alive()

    @property
    def ledger(self) -> Ledger:
        return read(self.keeper.files.lines(9))


def hold_of(ledger: Ledger, name: str) -> Hold | None:
    return next((one for one in ledger.holds.values() if one.pod == name), None)


def gpu_pod(admin: Api, name: str, gpus: int) -> Json:
    """A pod of alice's Job on g1 that the test plays the kubelet of."""
    own = admin.ask("GET", f"/apis/batch/v1/namespaces/vision/jobs/{name}")
    body = pod(f"{name}-abcde", "alice")
    body["metadata"]["labels"]["batch.kubernetes.io/job-name"] = name
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": own["metadata"]["uid"], "controller": True}
    body["metadata"]["ownerReferences"] = [owner]
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}, "requests": {"nvidia.com/gpu": str(gpus)}}
    body["spec"] |= {"containers": [{"name": "main", "image": "none", "resources": resources}], "nodeName": "g1"}
    assert admin.create(body) == ""
    return body


def says(admin: Api, name: str, status: Json) -> None:
    admin.ask("PATCH", f"/api/v1/namespaces/vision/pods/{name}/status", {"status": status}, MERGE)


def moment(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def test_two_control_planes_one_killed_in_the_middle(users: Users, recorder_api: Client, tmp_path: Path) -> None:
    admin, path = users.admin, "/apis/batch/v1/namespaces/vision/jobs/counted"
    ready(users.of["alice"], path)
    one, other = Keeping(recorder_api, tmp_path / "one"), Keeping(recorder_api, tmp_path / "other")
    made = job("jobs.batch", "counted", "alice", template("alice"))
    made["metadata"]["labels"]["pai-install/virtual-cluster"] = "default"
    assert users.of["alice"].create(made) == ""
    gpu_pod(admin, "counted", 4)
    bound = time.time()
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": moment(bound)}
    says(admin, "counted-abcde", {"phase": "Running", "conditions": [condition]})
    until(
        lambda: (found := hold_of(one.ledger, "counted-abcde")) and found.job and hold_of(other.ledger, "counted-abcde")
    )
    one.end()
    time.sleep(2)
    finished = time.time()
    state = {"terminated": {"exitCode": 0, "finishedAt": moment(finished)}}
    base = {"name": "main", "image": "none", "imageID": "", "ready": False, "restartCount": 0}
    says(admin, "counted-abcde", {"phase": "Succeeded", "containerStatuses": [{**base, "state": state}]})
    until(lambda: (found := hold_of(other.ledger, "counted-abcde")) and found.end)
    admin.ask("DELETE", "/api/v1/namespaces/vision/pods/counted-abcde?gracePeriodSeconds=0")
    again = Keeping(recorder_api, tmp_path / "one")
    guessed = until(lambda: it if (it := hold_of(again.ledger, "counted-abcde")) and it.end else None)
    assert guessed.estimated, "it was killed, and the pod is gone"
    found = hold_of(merged([again.ledger, other.ledger]), "counted-abcde")
    assert found is not None
    assert (found.start, found.end, found.estimated) == (int(bound), int(finished), False)
    assert (found.user, found.namespace, found.job, found.cluster) == ("alice", "vision", "counted", "default")
    assert (found.devices, found.reason, found.node) == (4, "completed", "g1")
    again.end()
    other.end()
    assert [line for line in (*one.said, *other.said, *again.said) if "cannot" in line] == [], (
        "what it may do is enough"
    )
    admin.ask("DELETE", f"{path}?propagationPolicy=Background")


PROGRAM = """
import sys
from pathlib import Path
from pai_install.agents.job_recorder import __main__ as program
program.CONFIGURATION = Path(sys.argv[1])
sys.exit(program.main())
"""


def started(users: Users, client: Client, folder: Path) -> subprocess.Popen[bytes]:
    """The program as its unit starts it."""
    for name in ("runtime", "credentials", "state"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "runtime/token").write_text(client.access().token)
    (folder / "credentials/ca.crt").write_text(Path(users.admin.authority).read_text())
    settings: Json = {"server": f"https://127.0.0.1:{users.admin.port}", "namespaces": list(NAMESPACES), "limits": {}}
    settings |= {"kinds": list(RESOURCES), "keep_days": 7, "most": 500, "log_bytes": 1000}
    settings |= {"ledger_months": 13, "reads_kueue": False}
    (folder / "settings.json").write_text(json.dumps(settings))
    names = {"RUNTIME_DIRECTORY": "runtime", "CREDENTIALS_DIRECTORY": "credentials", "STATE_DIRECTORY": "state"}
    environment = {**os.environ, **{name: str(folder / place) for name, place in names.items()}}
    words = [sys.executable, "-B", "-c", PROGRAM, str(folder / "settings.json")]
    return subprocess.Popen(words, env=environment, stderr=(folder / "log").open("ab"))


def test_program_is_killed_and_goes_on_with_the_same_file(users: Users, recorder_api: Client, tmp_path: Path) -> None:
    admin, path = users.admin, "/apis/batch/v1/namespaces/vision/jobs/killed"
    ready(users.of["alice"], path)
    assert users.of["alice"].create(job("jobs.batch", "killed", "alice", template("alice"))) == ""
    gpu_pod(admin, "killed", 2)
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": moment(time.time())}
    says(admin, "killed-abcde", {"phase": "Running", "conditions": [condition]})

    def kept() -> Hold | None:
        return hold_of(read(LedgerFiles(tmp_path / "state", 13).lines(9)), "killed-abcde")

    with started(users, recorder_api, tmp_path) as first:
        try:
            until(lambda: (found := kept()) and found.job)
        finally:
            first.kill()
    (file,) = (tmp_path / "state").iterdir()
    with file.open("a") as torn:
        torn.write('{"v":1,"event":"sta')
    finished = time.time()
    state = {"terminated": {"exitCode": 1, "finishedAt": moment(finished)}}
    base = {"name": "main", "image": "none", "imageID": "", "ready": False, "restartCount": 0}
    says(admin, "killed-abcde", {"phase": "Failed", "containerStatuses": [{**base, "state": state}]})
    with started(users, recorder_api, tmp_path) as second:
        try:
            until(lambda: (found := kept()) and found.end)
        finally:
            second.terminate()
    found = kept()
    assert found is not None
    assert (found.end, found.reason, found.estimated, found.devices) == (int(finished), "failed", False, 2)
    assert read(LedgerFiles(tmp_path / "state", 13).lines(9)).damaged == 1
    admin.ask("DELETE", f"{path}?propagationPolicy=Background")
    assert "Traceback" not in (tmp_path / "log").read_text()
