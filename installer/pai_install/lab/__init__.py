"""Throw-away machines on the controller host: systemd-nspawn on an overlay of a base image, one lab per site."""

from __future__ import annotations

from pai_install.lab.bringup import UpReport, heal, reinstall, up
from pai_install.lab.distribution import SUITES
from pai_install.lab.faults import Fault, inject
from pai_install.lab.gpu_stand_in import GpuState, show, work
from pai_install.lab.keys import ssh_command
from pai_install.lab.machine_options import Choice, chosen
from pai_install.lab.mixin import mixins
from pai_install.lab.observe import LabStatus, MachineStatus, status
from pai_install.lab.requirements import check_host
from pai_install.lab.spec import LabMachine, LabSpec, spec_of, state_dir_of
from pai_install.lab.teardown import all_labs, down, down_site, labs_of

__all__ = [
    "SUITES",
    "Choice",
    "Fault",
    "GpuState",
    "LabMachine",
    "LabSpec",
    "LabStatus",
    "MachineStatus",
    "UpReport",
    "all_labs",
    "check_host",
    "chosen",
    "down",
    "down_site",
    "heal",
    "inject",
    "labs_of",
    "mixins",
    "reinstall",
    "show",
    "spec_of",
    "ssh_command",
    "state_dir_of",
    "status",
    "up",
    "work",
]
