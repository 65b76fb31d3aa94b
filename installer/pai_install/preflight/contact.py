"""Machines without evidence: the check that reports them, and the cause. Pure."""

from __future__ import annotations

from pai_install.checks.check import Check
from pai_install.checks.finding import Finding
from pai_install.checks.result import failed
from pai_install.preflight.rules import CHECKS
from pai_install.report.causes import cause_of

_SSH = "messages of SSH and Ansible"
REACHABLE = Check(
    id="reachable",
    title="The machine answers over SSH and returns evidence",
    judge=None,
    reads=_SSH,
    rule="FAIL when the machine returns none and no other check reports the cause",
    remedy="connect to the machine with `ssh` manually, and run the same command again",
)
_HOST_KEY = Check(
    id="host-key",
    title="The machine's SSH host key is the recorded one",
    judge=None,
    reads=_SSH,
    rule="FAIL for a changed or unknown key",
    remedy="run with --accept-new to record unknown keys. Remove the line of a reinstalled machine from known_hosts",
)
_LOGIN = Check(
    id="login",
    title="The site's user can log in",
    judge=None,
    reads=_SSH,
    rule="FAIL when user, key, or password is rejected",
    remedy="run `ssh USER@MACHINE` with the same key. Correct username, password or key-file in the site",
)
CONTACT_CHECKS = {check.id: check for check in (REACHABLE, _HOST_KEY, _LOGIN)}
# cause, as report.causes names it -> the check that says so
_CAUSES = {
    "host-key-changed": "host-key",
    "host-key-unknown": "host-key",
    "ssh-login": "login",
    "sudo-password": "sudo",
    "sudo-timeout": "sudo",
    "python-missing": "python",
    "no-space": "disk-space",
    "read-only": "file-systems",
}
_CHECKS = {**CONTACT_CHECKS, **{check.id: check for check in CHECKS}}


def no_contact(name: str, words: str) -> Finding:
    """The finding for a machine that returned no evidence, with the cause in plain words."""
    cause = cause_of(words, unreachable=True)
    assert cause is not None  # noqa: S101 - there is always an explanation for an unreachable machine
    check = _CHECKS[_CAUSES.get(cause.id, REACHABLE.id)]
    value = " ".join(words.split())[:500]
    return check.finding(name, failed(cause.cause.rstrip("."), value, "evidence over SSH", remedy=cause.remedy))
