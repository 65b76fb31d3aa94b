"""The quickstart on bare machines, as README has it: a gang of two roles."""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import re
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.unit.app.test_code_upload import tarred

from .conftest import Cluster, lab_of, pai_install
from .console_client import ENDED, JOB, ConsoleClient, client_of, fingerprint_of
from .job_site import CODE, MASTER, ONE, PASSWORD, USER
from .notebook_client import NotebookBrowser

pytestmark = pytest.mark.lab

# Jobs of articles about OpenPAI, with another image and other commands: whole cores, in protocol 1.
SINGLE: dict[str, Any] = {
    "jobName": "mnist_024",
    "image": "registry.pai.internal/busybox:stable",
    "codeDir": "hdfs://10.0.0.1:9000/folder/mnist",
    "taskRoles": [
        {"taskNumber": 1, "cpuNumber": 4, "memoryMB": 4096, "gpuNumber": 2, "command": "nvidia-smi -L"},
    ],
}
DISTRIBUTED: dict[str, Any] = {
    "jobName": "mnist_025",
    "image": "registry.pai.internal/busybox:stable",
    "taskRoles": [
        {
            "name": "ps_server",
            "taskNumber": 2,
            "cpuNumber": 2,
            "memoryMB": 8192,
            "gpuNumber": 0,
            "command": "echo parameters for $PAI_TASK_ROLE_worker_HOST_LIST; sleep 3600",
        },
        {
            "name": "worker",
            "taskNumber": 2,
            "cpuNumber": 2,
            "memoryMB": 16384,
            "gpuNumber": 4,
            "command": "nvidia-smi -L",
        },
    ],
}


@pytest.fixture(scope="module")
def done(first_jobs: Cluster) -> CompletedProcess[str]:
    """The quickstart as it ended."""
    return first_jobs.quickstart


@pytest.fixture(scope="module")
def site(job_cluster: Cluster) -> Path:
    """The site whose cluster it made."""
    return job_cluster.site


@pytest.fixture(scope="module")
def master(site: Path) -> str:
    """Where the console is."""
    return str(lab_of(site).machine(MASTER).address)


def test_it_ends_with_the_output_of_a_gang(done: CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert "worker-0: step 3: weight 3 from the parameter server" in lines
    assert "ps-0: step 3: gradient 3, weight 6" in lines
    assert sum("(stand-in)" in line for line in lines) == 2, "the GPUs of the worker"


def test_its_link_sets_a_password_and_the_page_of_its_job_opens(
    done: CompletedProcess[str], site: Path, master: str
) -> None:
    found = re.search(r"^the first job: (\S+)$", done.stdout, re.MULTILINE)
    link = re.search(r"^  (https://\S+/password/\S+)$", done.stdout, re.MULTILINE)
    assert found, done.stdout
    assert link, done.stdout
    browser = NotebookBrowser(master, client_of(site, master).trust)
    browser.set_password(link[1], "a password of one's own")
    browser.sign_in(getpass.getuser(), "a password of one's own")
    page = browser.ask("GET", found[1])
    assert page.status_code == 200, page.text
    assert all(word in page.text for word in ("first-job", "SUCCEEDED", "worker")), page.text
    assert browser.ask("GET", f"{browser.origin}/users").status_code == 200, "an administrator"


def test_it_shows_no_finding_of_the_lab_itself(done: CompletedProcess[str]) -> None:
    found = [line for line in done.stdout.splitlines() if line.startswith(("WARN ", "UNKNOWN ", "FAIL "))]
    # what a busy box does to its disk is true
    assert [line for line in found if "etcd-disk" not in line] == []


@pytest.mark.parametrize(("job", "gpus"), [(SINGLE, 2), (DISTRIBUTED, 8)], ids=["single", "distributed"])
def test_jobs_of_openpai_articles_run(job: dict[str, Any], gpus: int, site: Path, tmp_path: Path) -> None:
    file = tmp_path / "job.json"
    file.write_text(json.dumps(job))
    words = ("--site", str(site), "--group", "team")
    submitted = pai_install("job", "submit", str(file), "--watch", *words, timeout_s=600)
    assert submitted.returncode == 0, submitted.stdout + submitted.stderr
    logs = pai_install("job", "logs", job["jobName"], *words)
    assert logs.stdout.count("(stand-in)") == gpus, logs.stdout + logs.stderr
    assert pai_install("job", "stop", job["jobName"], "--yes", *words).returncode == 0


@pytest.fixture(scope="module")
def console(site: Path, master: str) -> ConsoleClient:
    """OpenPAI's API on the control plane, as the administrator of OpenPAI's keys."""
    client = client_of(site, master)
    client.sign_in(USER, PASSWORD)
    return client


def test_the_console_has_the_certificate_that_is_printed(
    done: CompletedProcess[str], console: ConsoleClient, master: str
) -> None:
    status, found = console.ask("GET", "/api/v2/info")
    assert (status, found["launcherType"]) == (200, "k8s")
    assert f"console: https://{master}/" in done.stdout
    assert fingerprint_of(master) in done.stdout


def test_a_job_of_the_console_succeeds_and_its_log_is_read(console: ConsoleClient) -> None:
    console.submit(JOB.format(name="short", command="echo hello from the console"))
    assert console.until(f"{USER}~short", *ENDED)["jobStatus"]["state"] == "SUCCEEDED"
    assert "hello from the console" in console.log(f"{USER}~short", "main")


def test_the_console_stops_a_job(console: ConsoleClient) -> None:
    console.submit(JOB.format(name="long", command="sleep 3600"))
    console.until(f"{USER}~long", "RUNNING")
    assert console.ask("PUT", f"/api/v2/jobs/{USER}~long/executionType", {"value": "STOP"})[0] == 202
    console.until(f"{USER}~long", "STOPPED")


def test_large_code_of_the_form_goes_to_the_storage_of_the_group(
    job_cluster: Cluster, console: ConsoleClient, master: str
) -> None:
    """Its pod listens at a port, which the console alone reaches."""
    job_cluster.on(ONE, f"mkdir -p {CODE}")
    noise = os.urandom(2_000_000)
    archive = {"code": ("code.tar.gz", tarred({"noise": noise}))}
    browser = NotebookBrowser(master, console.trust)
    browser.sign_in(USER, PASSWORD)
    for name in ("coded", "coded-again"):
        content = JOB.format(name=name, command="sha256sum noise")
        answer = browser.send(f"{browser.origin}/jobs/new?as=file", archive, content=content, do="submit")
        assert answer.status_code == 303, answer.text
        assert console.until(f"{USER}~{name}", *ENDED)["jobStatus"]["state"] == "SUCCEEDED"
        assert hashlib.sha256(noise).hexdigest() in console.log(f"{USER}~{name}", "main")
    # once, as both jobs have the same code
    (stored,) = job_cluster.on(ONE, f"find {CODE} -name '*.tar.gz'").split()
    assert job_cluster.on(ONE, f"sha256sum {stored}").split()[0] == Path(stored).name.removesuffix(".tar.gz")
    assert job_cluster.kubectl("get", "pods", "-A", "-l", "pai-install/code-upload", "-o", "name") == ""


def test_a_second_apply_changes_nothing(site: Path, console: ConsoleClient) -> None:
    del console
    again = pai_install("apply", "--site", str(site), "--yes", "--format", "json", timeout_s=900)
    assert again.returncode == 0, again.stderr
    assert {counts["changed"] for counts in json.loads(again.stdout)["hosts"].values()} == {0}
