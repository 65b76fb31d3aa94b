"""The facts of a machine: the one type of what pai_facts returns. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from pai_install.errors import ExitCode, PaiError


class RoleRecord(BaseModel):
    """The record of a role on a machine. settings: variable -> digest; drift: one sentence each.

    readers: units that restart when the role changes a file of theirs; restarts: those whose files have drifted.
    """

    model_config = ConfigDict(frozen=True)
    settings: Mapping[str, str] = Field(default_factory=dict)
    drift: tuple[str, ...] = ()
    readers: tuple[str, ...] = ()
    restarts: tuple[str, ...] = ()


class Membership(BaseModel):
    """Whether the machine is a control plane, and a node. joined: an init or join came to its end here.

    node_name: the name that it joined under, from its kubelet's certificate; empty when it has none.
    settings: what a control plane runs with: pod_cidr, service_cidr, node_prefix, address, version, endpoint; those
    that could be read.
    """

    model_config = ConfigDict(frozen=True)
    control_plane: bool = False
    node: bool = False
    joined: bool = False
    node_name: str = ""
    settings: Mapping[str, str] = Field(default_factory=dict)


class Certificate(BaseModel):
    """A certificate file. expires: seconds since 1970; None where it could not be read, `problem` says why."""

    model_config = ConfigDict(frozen=True)
    path: str
    expires: int | None = None
    problem: str = ""


class DockerFacts(BaseModel):
    """Docker as it is in use. version: of dockerd, empty without one. containers: how many run.

    data_root, log_driver: of daemon.json, or Docker's default.
    """

    model_config = ConfigDict(frozen=True)
    version: str = ""
    containers: int = 0
    data_root: str = ""
    log_driver: str = ""


class Distribution(BaseModel):
    """Of /etc/os-release."""

    model_config = ConfigDict(frozen=True)
    id: str = ""
    version_id: str = ""
    version_codename: str = ""


class Virtualization(BaseModel):
    """kind: what systemd-detect-virt says; container: whether the machine shares the kernel of another one."""

    model_config = ConfigDict(frozen=True)
    kind: str = "none"
    container: bool = False


class Observed(BaseModel):
    """One machine, as module pai_facts saw it. Plans read it here, roles and filters as `ansible_facts.pai`.

    cgroup_driver: systemd or cgroupfs, for the kubelet, containerd and Docker. sys_resource: whether root has that
    capability. bridge_netfilter: whether the kernel filters bridged packets. mtu: bytes, of the default route.
    mtus: IPv4 address -> MTU of the interface that has it.
    services: those that run, of the ones that an installation may restart or stop. cluster: on a control plane only.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")
    hostname: str
    machine_id: str = ""
    os: Distribution = Distribution()
    kernel: str = ""
    virtualization: Virtualization = Virtualization()
    cgroup_version: int = 2
    cgroup_driver: str = "systemd"
    sys_resource: bool = True
    bridge_netfilter: bool = True
    mtu: int = 1500
    mtus: Mapping[str, int] = Field(default_factory=dict)
    kubernetes: Membership = Membership()
    certificates: tuple[Certificate, ...] = ()
    services: tuple[str, ...] = ()
    docker: DockerFacts = DockerFacts()
    roles: Mapping[str, RoleRecord] = Field(default_factory=dict)
    cluster: Mapping[str, Any] | None = None


def parse_observed(result: Mapping[str, Any]) -> Observed:
    """The facts in a module result. Raises PaiError when it holds none."""
    facts = result.get("ansible_facts", {}).get("pai")
    if not isinstance(facts, Mapping):
        raise PaiError("a machine was observed, but its facts are missing", exit_code=ExitCode.INTERNAL)
    return Observed.model_validate(dict(facts))
