"""Jobs as values, and places for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pai_install.jobs.model import Job, JobMount, JobPort, PullLogin, Resources, Role
from pai_install.jobs.place import Claim, JobOwner, JobPlace
from pai_install.scheduling.model import Backend
from tests.virtual_clusters import two_teams, with_backend

OWNER = JobOwner("alice", "vision", "vision")


def role(name: str, instances: int = 1, gpus: int = 0, **more: Any) -> Role:
    """A role of 2 processors and 4 GiB that prints something."""
    asked = Resources(2, 4096, gpus, sku=more.pop("sku", None), shm_mb=more.pop("shm_mb", 64))
    words = {"image": "example.com/train:1", "command": "python train.py $PAI_TASK_INDEX", **more}
    return Role(name, instances, resources=asked, **words)


def single() -> Job:
    """One instance with two devices."""
    return Job("mnist_024", (role("main", gpus=2),))


def servers_and_workers() -> Job:
    """Parameter servers, which run until the workers have ended; a storage, ports, a login, a secret in a command."""
    servers = role("ps_server", 2, command="python ps.py", ports=(JobPort("http", 1, 2222), JobPort("grpc", 2)))
    workers = role(
        "worker-v2",
        2,
        4,
        command="curl -H 'token: T0KEN' example.com\npython worker.py",
        min_succeeded=2,
        login=PullLogin("example.com", "robot", "pass-word"),
        confidential=True,
        environment={"EPOCHS": "3", "PRICE": "$(COST)"},
        shm_mb=512,
    )
    mounts = (JobMount("data", "/mnt/data"), JobMount("home", "/mnt/home"))
    return Job("ps.job", (servers, workers), "research", "prod", retries=2, mounts=mounts)


def somewhere(backend: Backend = "kueue") -> JobPlace:
    """In the virtual cluster `research` of a site of two teams."""
    scheduling = with_backend(two_teams(), backend)
    claims = {"data": Claim("data"), "home": Claim("home-g2", "alice")}
    return JobPlace(scheduling, scheduling.cluster("research"), "prod", OWNER, claims)


def elastic() -> Job:
    """Three of four instances are enough, one may fail, each is retried once."""
    return Job("search", (role("trial", 4, 1, min_failed=2, min_succeeded=3, retries=1, sku="a100"),), gang=False)


def whole(job: Job) -> Job:
    """The same without what Volcano cannot count."""
    roles = tuple(replace(one, min_failed=1, min_succeeded=None, retries=0) for one in job.roles)
    return replace(job, roles=roles)
