"""Variables of OpenPAI and ports."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pai_install.errors import ExitCode, PaiError
from pai_install.jobs.compile.jobset import outline_of
from pai_install.jobs.compile.variables import ports_of, variables
from pai_install.jobs.model import Job, JobPort
from pai_install.jobs.variable_names import own_variables, variable_names
from tests.errors import raises
from tests.unit.jobs.examples import role, servers_and_workers, single, somewhere


def told(job: Job, number: int = 0) -> dict[str, str]:
    """Variable -> value, or the field that it is read from."""
    outline = outline_of(job, somewhere())
    found = variables(job, job.roles[number], outline.place, outline.names, outline.index)
    assert len({row["name"] for row in found}) == len(found)
    return {row["name"]: row.get("value") or str(row.get("valueFrom", "")) for row in found}


@pytest.mark.parametrize("job", [single(), servers_and_workers()])
def test_what_validate_promises_is_what_a_container_sees(job: Job) -> None:
    for number, one in enumerate(job.roles):
        # names that no shell can have get a second one, in capitals
        plain = {name for name in told(job, number) if "WORKER_V2" not in name}
        assert {*variable_names(job), *own_variables(one)} == plain


def test_hosts_are_those_of_the_pods() -> None:
    found = told(servers_and_workers())
    hosts = [f"ps-job-ps-server-0-{index}.ps-job.vision.svc.cluster.local" for index in (0, 1)]
    assert found["PAI_TASK_ROLE_ps_server_HOST_LIST"] == f"{hosts[0]}:2222,{hosts[1]}:2222"
    assert found["PAI_HOST_IP_ps_server_1"] == hosts[1]
    assert found["PAI_PORT_LIST_ps_server_1_grpc"] == "10000,10001"
    assert "job-completion-index" in found["PAI_TASK_INDEX"]
    assert found["PAI_JOB_NAME"] == "alice~ps.job"


def test_a_name_that_no_shell_knows_has_one_that_it_does() -> None:
    found = told(servers_and_workers())
    assert found["PAI_TASK_ROLE_WORKER_V2_HOST_LIST"] == found["PAI_TASK_ROLE_worker-v2_HOST_LIST"]
    assert "PAI_TASK_ROLE_PS_SERVER_HOST_LIST" not in found


def test_kubernetes_replaces_nothing_in_values() -> None:
    assert told(servers_and_workers(), 1)["PRICE"] == "$$(COST)"


def test_a_file_does_not_say_which_devices_it_sees() -> None:
    job = Job("a", (role("main", environment={"NVIDIA_VISIBLE_DEVICES": "all"}),))
    with raises("reserved-variable", "NVIDIA_VISIBLE_DEVICES"):
        told(job)


def test_more_than_a_program_can_be_told() -> None:
    with raises("variable-too-long") as caught:
        told(Job("a", (role("main", 4000),)))
    assert caught.value.exit_code == ExitCode.SITE_INVALID


@pytest.mark.parametrize(
    ("ports", "expected"),
    [
        ((), {"http": (10000,), "ssh": (10001,)}),
        ((JobPort("web", 2),), {"web": (10000, 10001), "http": (10002,), "ssh": (10003,)}),
        ((JobPort("web", 1, 10000),), {"web": (10000,), "http": (10001,), "ssh": (10002,)}),
        (
            (JobPort("a", 1, 10001), JobPort("b", 2)),
            {"a": (10001,), "b": (10002, 10003), "http": (10000,), "ssh": (10004,)},
        ),
        ((JobPort("http", 1), JobPort("ssh", 1, 22)), {"http": (10000,), "ssh": (22,)}),
        ((JobPort("a", 1, 0),), {"a": (10000,), "http": (10001,), "ssh": (10002,)}),
    ],
)
def test_ports(ports: tuple[JobPort, ...], expected: dict[str, tuple[int, ...]]) -> None:
    found = ports_of(replace(role("main"), ports=ports))
    assert found == expected


@pytest.mark.parametrize(
    ("ports", "message"),
    [
        ((JobPort("a", 2, 2222), JobPort("b", 1, 2223)), "port 2223 of b in role main: it belongs to a"),
        ((JobPort("a", 2, 65535),), "port 65536 of a in role main: it is above 65535"),
    ],
)
def test_ports_that_cannot_be(ports: tuple[JobPort, ...], message: str) -> None:
    with pytest.raises(PaiError, match=message):
        ports_of(replace(role("main"), ports=ports))
