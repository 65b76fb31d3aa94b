"""Access to the machine: sudo, Python, operating system, architecture."""

from __future__ import annotations

import re

from pai_install.checks.result import Result, failed, passed
from pai_install.preflight.model import Case, machine_check
from pai_install.preflight.needs import SUPPORTED_SYSTEMS

_OLDEST_PYTHON = (3, 9)
_ARCHITECTURES = ("x86_64", "aarch64")
# in order; the words that sudo and Ansible say, and what they mean
_SUDO = (
    (
        r"not in the sudoers|may not run sudo|is not allowed to execute",
        "{user} is not allowed to use sudo",
        "add {user} to the group sudo there, or name another user in the site",
    ),
    (
        r"Incorrect sudo password|Sorry, try again|incorrect password attempt",
        "sudo refuses the password that the site gives for {user}",
        "correct the password of {user} in the site",
    ),
    (
        r"Missing sudo password|a password is required|a terminal is required",
        "sudo asks {user} for a password, and the site gives none",
        "give the password in the site, or allow {user} sudo without one: {user} ALL=(ALL) NOPASSWD:ALL",
    ),
    (
        r"sudo: (command )?not found|No such file.*sudo|/sudo: ",
        "sudo is not installed",
        "install sudo there, or log in as root",
    ),
    (
        r"waiting for privilege escalation prompt|Timed out",
        "sudo does not answer",
        "run `sudo true` as {user} there: a slow directory service or an unresolvable host name can block sudo",
    ),
)


@machine_check(
    id="sudo",
    title="The login user can become root",
    reads="identity, and sudo's answer to Ansible",
    rule="FAIL when the probe did not run as root",
    source="Ansible",
    remedy="allow sudo for the login user, set its password in the site, or log in as root",
)
def sudo(case: Case) -> Result | None:
    """The login user can become root."""
    identity, problem = case.evidence.identity, case.evidence.sudo_problem
    user = case.machine.ssh.user
    if identity is not None and identity.root and not problem:
        return passed(message=f"{user} can act as root")
    for words, message, remedy in _SUDO:
        if re.search(words, problem, re.IGNORECASE):
            return failed(message.format(user=user), value=_last_line(problem), remedy=remedy.format(user=user))
    if not case.machine.become:
        message = f"{user} is not root, and `become: false` forbids sudo"
        return failed(message, value=user, expected="root", remedy="log in as root, or remove become: false")
    remedy = f"run `sudo true` as {user} on this machine"
    return failed(f"{user} cannot become root", value=_last_line(problem), expected="root", remedy=remedy)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


@machine_check(
    id="python",
    title="Python is 3.9 or newer",
    reads="identity: version of the python3 that Ansible uses",
    rule="FAIL below 3.9",
    source="ansible-core 2.19",
    remedy="use a supported release of the operating system, or install a newer python3",
)
def python(case: Case) -> Result | None:
    """Python is new enough for our modules."""
    version = case.evidence.identity.python
    numbers = tuple(int(word) for word in re.findall(r"\d+", version)[:2])
    if numbers >= _OLDEST_PYTHON:
        return passed(version, message="Python is new enough")
    return failed(
        f"Python {version} is too old",
        value=version,
        expected="3.9 or newer",
    )


@machine_check(
    id="operating-system",
    title="The system is Debian 12 or 13, or Ubuntu 22.04 or 24.04, with systemd",
    reads="system: /etc/os-release, /run/systemd/system",
    rule="FAIL for another release, or without systemd",
    remedy="install a supported release on this machine",
)
def operating_system(case: Case) -> Result | None:
    """The distribution and its release are supported."""
    system = case.evidence.system
    seen = system.name or f"{system.id} {system.version_id}"
    if system.version_id in SUPPORTED_SYSTEMS.get(system.id, ()) and system.systemd:
        return passed(seen, message="the operating system is supported")
    if not system.systemd:
        return failed(
            "the machine does not run systemd",
            value=seen,
            expected="systemd",
            remedy="boot the machine with systemd as its init",
        )
    supported = ", ".join(f"{name.capitalize()} {' and '.join(found)}" for name, found in SUPPORTED_SYSTEMS.items())
    return failed(f"{seen} is not supported", value=seen, expected=supported)


@machine_check(
    id="architecture",
    title="The machine is x86_64 or aarch64, the same as the controller host",
    reads="system: architecture of the kernel",
    rule="FAIL when it differs from the controller host",
    remedy="run pai-install on a host with the machine's architecture. A site has one architecture",
)
def architecture(case: Case) -> Result | None:
    """The programs that the controller host has fetched run there."""
    seen, box = case.evidence.system.architecture, case.fleet.architecture
    if seen not in _ARCHITECTURES:
        expected = " or ".join(_ARCHITECTURES)
        remedy = "remove the machine from layout.yaml"
        return failed(f"{seen or 'its architecture'} is not supported", value=seen, expected=expected, remedy=remedy)
    if not box or seen == box:
        return passed(seen, message="the components run on this architecture")
    return failed(
        "the machine's architecture differs from the controller host, and thus from the components",
        value=seen,
        expected=box,
        remedy=f"run pai-install on a controller host with {seen}. All machines of a site need the same architecture",
    )
