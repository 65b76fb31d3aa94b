"""`pai-install quickstart`: from nothing to a job on a verified cluster in the lab."""

from __future__ import annotations

import shutil
import sys
import time
from contextlib import nullcontext, redirect_stdout
from pathlib import Path

import click

from pai_install import lab
from pai_install.app.context import App
from pai_install.app.first_access import give_first_access
from pai_install.app.jobs import has_job
from pai_install.cli.command import environment_of
from pai_install.cli.options import format_option, site_option_with, yes_option
from pai_install.cli.output import confirm, echo
from pai_install.cli.terminal import Terminal
from pai_install.errors import ExitCode, PaiError
from pai_install.operations.install import Install
from pai_install.report.quickstart import quickstart_report, quickstart_text
from pai_install.run.environment import Environment, component_requirements, site_components
from pai_install.site import Site, load_site
from pai_install.system.content import content_dir, in_checkout, program
from pai_install.system.output import output_may_be_lost
from pai_install.system.packages import install

_LAYOUT = Path("layouts") / "quickstart"
_STEPS = 5
# of layouts/quickstart: its job, and the group that submits it
JOB_FILE, JOB, GROUP = "job.yaml", "first-job", "team"


@click.command
@site_option_with(meaning="Site to bring up in the lab.  [default: layouts/quickstart]")
@yes_option
@format_option
@click.pass_context
def command(context: click.Context, *, site_dir: Path | None, yes: bool, output_format: str) -> int:
    """Install a cluster in the lab and run a GPU job on it.

    The command starts the lab machines, fetches all components, installs and verifies the cluster, and runs a gang of a
    parameter server and a worker. GPUs are stand-ins. It makes you an administrator of the console, and prints a link
    for your password and the page of the job. Run it again to continue, to check, or for a new link.
    """
    began = time.monotonic()
    folder = site_dir or _lab_site()
    site = load_site(folder).site
    spec = lab.spec_of(site)
    # before any package: without root, or on a kernel without overlay, packages do not help
    lab.check_host(spec)
    _step(1, "packages on this host")
    _install_packages(site, yes=yes)
    _step(2, "machines of the lab")
    lab.up(spec, confirm=lambda question: yes or confirm(question), progress=_inform)
    _step(3, "components (the first run builds them: about a quarter of an hour on 2 cores)")
    site_components(site, _inform)
    _step(4, "the cluster")
    environment = environment_of(context)
    with output_may_be_lost(), Terminal(yes=True, output_format=output_format) as terminal:
        with App(folder, environment, terminal) as app:
            code = app.exit_code(Install())
            if code != ExitCode.OK:
                terminal.show_runs(code, several=False)
                return code
            access = give_first_access(app, GROUP)
            # The name of a job is taken until it is stopped.
            again = (folder / JOB_FILE).exists() and has_job(app, JOB, GROUP)
        job = None
        if (folder / JOB_FILE).exists():
            _step(5, "a job: a parameter server and a worker with GPUs")
            # The document alone is on stdout.
            with redirect_stdout(sys.stderr) if terminal.as_json else nullcontext():
                code = _run_job(folder, environment, access.user, again=again)
            job = access.job(JOB, GROUP)
        report = quickstart_report(code, time.monotonic() - began, len(site.present_machines), access, job)
        terminal.show(report, quickstart_text(report, folder, access.user, program=program()))
    return code


def _lab_site() -> Path:
    """layouts/quickstart of the checkout. An installed package is read-only: its copy goes to ./pai-quickstart."""
    shipped = content_dir() / _LAYOUT
    if in_checkout():
        return _LAYOUT if _LAYOUT.resolve() == shipped else shipped
    own = Path("pai-quickstart")
    if not own.exists():
        shutil.copytree(shipped, own)
    return own


def _run_job(folder: Path, environment: Environment, user: str, *, again: bool) -> int:
    """Runs the job to its end with the commands that a user types, and returns the exit code."""
    from pai_install.cli.main import run  # noqa: PLC0415 - it imports this module

    def typed(*words: str) -> int:
        _inform(f"$ pai-install job {' '.join(words)} --site {folder} --group {GROUP}")
        return run(["job", *words, "--site", str(folder), "--group", GROUP], environment)

    if again and (code := typed("stop", JOB, "--yes")) != ExitCode.OK:
        return code
    code = typed("submit", str(folder / JOB_FILE), "--watch", "--user", user)
    typed("logs", JOB)
    return code


def _install_packages(site: Site, *, yes: bool) -> None:
    lacking = component_requirements(site)
    if not lacking:
        return
    _inform(f"missing Debian packages: {', '.join(lacking)}")
    if not yes and not confirm("Install them now?"):
        raise PaiError(
            "cannot build the components: packages are missing",
            code="quickstart-packages-missing",
            remedy=f"run apt-get install {' '.join(lacking)}, then repeat the command",
            exit_code=ExitCode.PREFLIGHT_FAILED,
        )
    install(lacking)


def _step(number: int, title: str) -> None:
    _inform(f"[{number}/{_STEPS}] {title}")


def _inform(line: str) -> None:
    echo(line, err=True)
