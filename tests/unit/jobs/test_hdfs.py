"""Folders of HDFS in old job files: on a storage of the site, and in the shell of a job."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from pydantic_core import PydanticCustomError

from pai_install.jobs.hdfs import MOUNT, folder_on, read_hdfs_folder
from pai_install.jobs.model import Job, JobMount
from pai_install.jobs.read import JobReading
from pai_install.profile.model import ClusterProfile
from pai_install.report.job import first_line
from pai_install.schedulers.job_check import check_hdfs, check_job
from tests.unit.jobs.sites import GROUPS, STORAGES, research
from tests.unit.jobs.test_read import V1, read
from tests.unit.scheduling.test_read import VALID
from tests.unit.site.rules.scheduling.sites import problems_of

# the job of the article on OpenPAI, as the web page prints it
SEED = r"""    {
        "jobName": "mnist_024",
        "image": "openpai/pai.example.tensorflow",
        "codeDir": "hdfs://\<ip address\>:\<port\>/folder/mnist",
        "taskRoles": [
            {
            "taskNumber": 1,
            "cpuNumber": 4,
            "memoryMB": 4096,
            "gpuNumber": 2,
            "command": "python \$PAI_WORK_DIR/mnist/mnist.py"
            }
        ]
    }
"""
MAPPED = VALID + GROUPS + STORAGES + "jobs: {hdfs: {storage: team, path: /old hdfs}}\n"
ALL = '"codeDir": "hdfs://h:9000/a/code", "dataDir": "$PAI_DEFAULT_FS_URI/data", "outputDir": "webhdfs://h/out/"'


def site(services: str = MAPPED) -> ClusterProfile:
    return research(services)


def told(reading: JobReading) -> list[tuple[int, str, str]]:
    return [(one.line, one.code, one.severity) for one in reading.problems if one.code != "job.escape"]


@pytest.mark.parametrize(
    ("address", "folder"),
    [
        ("hdfs://10.0.0.1:9000/folder/mnist", "/folder/mnist"),
        ("hdfs://<ip address>:<port>/folder/mnist/", "/folder/mnist"),
        ("webhdfs://host//a/./b", "/a/b"),
        ("$PAI_DEFAULT_FS_URI/Output", "/Output"),
        ("${PAI_DEFAULT_FS_URI}/Output", "/Output"),
        ("hdfs://host", "/"),
    ],
)
def test_addresses(address: str, folder: str) -> None:
    assert read_hdfs_folder(address) == folder


@pytest.mark.parametrize(
    "address",
    ["/data", "s3://host/x", "hdfs:/x", "hdfs://h/../etc", "hdfs://h/a/..", "hdfs://h/a\nb", "hdfs://h/\x1b["],
)
def test_other_addresses_are_refused(address: str) -> None:
    with pytest.raises(PydanticCustomError):
        read_hdfs_folder(address)


@pytest.mark.parametrize(("root", "whole"), [("/", "/a"), ("/x", "/x/a"), ("/x/", "/x/a")])
def test_the_folder_of_the_storage(root: str, whole: str) -> None:
    assert folder_on(root, "/a") == whole


def test_the_job_of_the_seed_runs_as_it_is_written() -> None:
    reading = check_job(read(SEED), site(), "Vision_1")
    assert told(reading)[0] == (4, "job.hdfs", "warning")
    assert "/old hdfs/folder/mnist of the storage team" in reading.problems[0].message
    assert isinstance(reading.job, Job)
    assert reading.job.mounts == (JobMount("team", MOUNT),)
    (role,) = reading.job.roles
    assert first_line(role.command) == "python $PAI_WORK_DIR/mnist/mnist.py", "the line that the user knows"
    assert "/old hdfs/folder/mnist" in role.preparation
    # checked again, as by job submit after job validate
    assert check_job(reading, site(), "Vision_1").job == reading.job


def test_without_a_mapping_the_code_is_a_warning_and_data_an_error() -> None:
    assert (4, "job.no-effect", "warning") in told(check_job(read(SEED), site(VALID + GROUPS + STORAGES), None))
    reading = read(V1.replace('"retryCount": 0', ALL))
    for checked in (check_job(reading, site(VALID + GROUPS + STORAGES), None), check_hdfs(reading, None, None)):
        assert checked.job is None
        assert [one.severity for one in checked.problems] == ["warning", "error", "error"]
        assert all("jobs: {hdfs: {storage: NAME" in one.remedy for one in checked.problems)


def test_a_group_without_a_grant_is_refused_at_the_line() -> None:
    checked = check_job(read(SEED), site(), "nlp")
    assert checked.job is None
    assert (4, "job.storage", "error") in told(checked)


def test_results_need_a_storage_that_can_be_written() -> None:
    services = MAPPED.replace("path: /team,", "path: /team, read-only: true,")
    assert check_job(read(SEED), site(services), "Vision_1").job is not None
    reading = check_job(read(V1.replace('"retryCount": 0', ALL)), site(services), "Vision_1")
    assert [one.severity for one in reading.problems] == ["warning", "warning", "error"]


def test_another_storage_at_its_place_is_refused() -> None:
    extras = '"extras": {"storages": [{"name": "sets", "mountPath": "/mnt/hdfs"}]}'
    services = MAPPED.replace("[team]", "[team, sets]")
    reading = check_job(read(V1.replace('"retryCount": 0', f"{ALL}, {extras}")), site(services), "Vision_1")
    assert "job.twice" in [one.code for one in reading.problems if one.is_error]
    same = extras.replace("sets", "team")
    found = check_job(read(V1.replace('"retryCount": 0', f"{ALL}, {same}")), site(services), "Vision_1").job
    assert isinstance(found, Job)
    assert found.mounts == (JobMount("team", MOUNT),)


def shell(tmp_path: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Runs the script of a job with all three folders."""
    reading = check_job(read(V1.replace('"retryCount": 0', ALL).replace('"run"', f'"{command}"')), site(), "Vision_1")
    assert isinstance(reading.job, Job)
    (role, *_) = reading.job.roles
    words = {key: value.replace(MOUNT, str(tmp_path)) for key, value in role.environment.items()}
    words |= {"PATH": os.environ["PATH"], "PAI_WORK_DIR": str(tmp_path / "work")}
    script = f"{role.preparation}{role.command}".replace(MOUNT, str(tmp_path))
    return subprocess.run(["sh", "-c", script], env=words, capture_output=True, text=True, check=False)


def test_the_shell_of_a_job(tmp_path: Path) -> None:
    root = tmp_path / "old hdfs"
    (root / "a" / "code" / "lib").mkdir(parents=True)
    (root / "a" / "code" / "lib" / "train.sh").write_text("echo trained > $PAI_OUTPUT_DIR/model; cat $PAI_DATA_DIR/x")
    done = shell(tmp_path, "sh code/lib/train.sh")
    assert done.returncode == 1
    assert "dataDir" in done.stderr
    (root / "data").mkdir()
    (root / "data" / "x").write_text("samples")
    services = f'sh code/lib/train.sh; cat "{"$"}PAI_DATA_DIR/x"'.replace('"', r"\"")
    done = shell(tmp_path, services)
    assert "samples" in done.stdout
    assert (tmp_path / "work" / "code" / "lib" / "train.sh").exists()
    assert (root / "out").is_dir()


def test_missing_code_starts_nothing(tmp_path: Path) -> None:
    done = shell(tmp_path, "echo started")
    assert (done.returncode, done.stdout) == (1, "")
    assert "codeDir" in done.stderr


@pytest.mark.parametrize(
    ("section", "cause"), [("{storage: taem}", "team"), ("{storage: team, path: ../x}", "folder"), ("{}", "required")]
)
def test_validate_names_the_line(section: str, cause: str, tmp_path: Path) -> None:
    services = f"{VALID}{GROUPS}{STORAGES}jobs:\n  hdfs: {section}\n"
    (problem,) = [one for one in problems_of(tmp_path, services) if one.is_error]
    assert problem.line == services.count("\n")
    assert cause in f"{problem.message} {problem.remedy}"
