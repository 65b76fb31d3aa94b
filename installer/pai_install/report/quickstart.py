"""The result of `quickstart`: the console, the first job, the first sign-in, and the commands that come next. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from pai_install.errors import ExitCode
from pai_install.json_schema import Count, ExitStatus, Report, ReportObject, Seconds
from pai_install.report.site_status import ConsoleAccess
from pai_install.site.console import job_address
from pai_install.system.words import plural

_NEXT = (
    ("status {here}", "machines, cluster, and drift"),
    ("job list {here} --all", "your jobs"),
    ("kubectl {here} -- get nodes", "the nodes"),
    ("lab down {here} --yes", "remove everything"),
)
_PASSWORD = ("user password {user} {here}", "another link for a password of the console")
_KUBECONFIG = ("user kubeconfig {user} {here}", "a file for the sign-in to the console")


class FirstJob(ReportObject):
    """The job of the quickstart."""

    name: str
    user: str
    group: str
    url: str | None = Field(description="Page of the job in the console. null: the site has no console.")


class FirstSignIn(ReportObject):
    """A link with which a user sets a password of the console once."""

    user: str
    url: str = Field(repr=False)
    until: str


@dataclass(frozen=True, slots=True)
class FirstAccess:
    """The first user of the console. console: None without one. sign_in: None without passwords."""

    user: str
    console: ConsoleAccess | None = None
    sign_in: FirstSignIn | None = None

    def job(self, name: str, group: str) -> FirstJob:
        """A job of the user."""
        url = job_address(self.console.addresses[0], self.user, name) if self.console else None
        return FirstJob(name=name, user=self.user, group=group, url=url)


class QuickstartReport(Report, title="pai-install quickstart"):
    """The result of a quickstart whose installation succeeded."""

    ok: bool
    exit_code: ExitStatus
    duration_s: Seconds
    machines: Count
    console: ConsoleAccess | None
    job: FirstJob | None
    sign_in: FirstSignIn | None = Field(description="null: the console has no passwords, or there is none.")


def quickstart_report(
    code: int, seconds: float, machines: int, access: FirstAccess, job: FirstJob | None
) -> QuickstartReport:
    """The result. code: exit code of the job."""
    return QuickstartReport(
        ok=code == ExitCode.OK,
        exit_code=code,
        duration_s=round(seconds, 1),
        machines=machines,
        console=access.console,
        job=job,
        sign_in=access.sign_in,
    )


def quickstart_text(report: QuickstartReport, folder: Path, user: str, *, program: str) -> str:
    """Returns the result and the next commands. program: the command as a user types it. user: the first one."""
    nodes = plural(report.machines, "machine is", "machines are")
    access = () if report.console is None else (_PASSWORD if report.sign_in else _KUBECONFIG,)
    here = f"--site {folder}"
    commands = [
        (f"{program} {words.format(here=here, user=user)}", meaning)
        for words, meaning in (*_NEXT[:-1], *access, _NEXT[-1])
    ]
    width = max(len(words) for words, _meaning in commands)
    return "\n".join(
        [
            "",
            f"{nodes} a verified Kubernetes cluster after {report.duration_s / 60:.1f} min.",
            *(f"  {words:{width}}  {meaning}" for words, meaning in commands),
            *_access(report),
            "",
        ]
    )


def _access(report: QuickstartReport) -> Iterator[str]:
    if report.console:
        yield from report.console.lines
    if report.job and report.job.url:
        yield f"the first job: {report.job.url}"
    if report.sign_in:
        yield f"sign in as {report.sign_in.user}: set a password once, until {report.sign_in.until}, at"
        yield f"  {report.sign_in.url}"
