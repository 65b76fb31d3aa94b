"""Mix-ins: changes that an admin made to a machine before pai-install, each a shell script in `mixins/`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from pai_install.errors import ExitCode, PaiError
from pai_install.lab.keys import ssh_command
from pai_install.lab.record import Kind, LabRecord, Resource
from pai_install.lab.spec import LabMachine, LabSpec
from pai_install.system.proc import run

FOLDER = Path(__file__).parent / "mixins"
# ssh from the box ends at this one: the lab cannot wait for such a machine
BEHIND_BASTION = "behind-bastion"
_TIMEOUT_S = 600


@cache
def mixins() -> Mapping[str, str]:
    """Returns mix-in name -> sentence about its effect on a machine."""
    files = sorted(FOLDER.glob("*.sh"))
    return {path.stem: path.read_text().partition("\n")[0].removeprefix("# ") for path in files}


def checked_mixin(name: str) -> str:
    """`name` itself. Raises PaiError when there is no such mix-in."""
    if name not in mixins():
        raise PaiError(
            f"cannot find mix-in {name!r}",
            code="lab-unknown-mixin",
            remedy=f"choose one of: {', '.join(mixins())}",
            exit_code=ExitCode.USAGE,
        )
    return name


def mixins_of(record: LabRecord, machine: LabMachine) -> tuple[str, ...]:
    """Names of the mix-ins that ran on a machine, in their order."""
    return tuple(one.name.partition(" ")[0] for one in recorded(record, machine))


def recorded(record: LabRecord, machine: LabMachine) -> tuple[Resource, ...]:
    """The same as the record has them."""
    return tuple(one for one in record.of(Kind.MIXIN) if one.detail == machine.name)


def as_resource(machine: LabMachine, name: str) -> Resource:
    """Returns the entry of the lab's record for an executed mix-in."""
    return Resource(Kind.MIXIN, f"{name} of {machine.name}", machine.name)


def script(spec: LabSpec, machine: LabMachine, name: str) -> str:
    """Returns the shell script of a mix-in for a machine."""
    words = {
        "ADDRESS": str(machine.address),
        "GATEWAY": str(spec.gateway),
        "SUBNET": str(spec.subnet),
        "LOGIN": spec.user,
        "NAME": machine.name,
    }
    lines = "".join(f"{key}={shlex.quote(value)}\n" for key, value in words.items())
    return lines + (FOLDER / "prelude").read_text() + (FOLDER / f"{name}.sh").read_text()


def mix_in(spec: LabSpec, machine: LabMachine, name: str) -> None:
    """Runs a mix-in as root of a machine that is up. Raises PaiError with the script's own words when it fails."""
    done = run(
        ssh_command(spec, machine, ["sudo", "sh", "-s"]),
        stdin=script(spec, machine, name),
        check=False,
        timeout_s=_TIMEOUT_S,
    )
    if not done.ok:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise PaiError(
            f"cannot apply mix-in {name} to {machine.name}: {lines[-1]}",
            code="lab-mixin-impossible",
            details="\n".join(lines[:-1]),
            exit_code=ExitCode.PREFLIGHT_FAILED,
        )
