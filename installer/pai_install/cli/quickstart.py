"""`pai-install quickstart`: from nothing to a verified cluster in the lab."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import click

from pai_install import lab
from pai_install.cli._shared.act import How, SiteRequest, act
from pai_install.cli._shared.environment import pass_environment
from pai_install.cli.options import site_option_with, yes_option
from pai_install.errors import ExitCode, PaiError
from pai_install.operations.install import Install
from pai_install.run.environment import Environment, component_requirements, site_components
from pai_install.site import Site, load_site
from pai_install.system.content import content_dir
from pai_install.system.packages import install
from pai_install.system.words import plural


@click.command
@site_option_with(meaning="Site to bring up in the lab.  [default: layouts/lab]")
@yes_option
@pass_environment
def command(*, site_dir: Path | None, yes: bool, environment: Environment) -> int:
    """Bring up the lab's machines, get every component, install, verify. Run it again to continue or to check."""
    began = time.monotonic()
    folder = site_dir or _lab_site()
    site = load_site(folder).site
    _step(1, "packages on the dev box")
    _install_packages(site, yes=yes)
    _step(2, "machines of the lab")
    lab.up(lab.spec_of(site), confirm=lambda question: yes or click.confirm(question, err=True), progress=_say)
    _step(3, "components (the first time they are built: about a quarter of an hour on 2 cores)")
    site_components(site, _say)
    _step(4, "the cluster")
    code = act(SiteRequest(folder, Install()), environment, How(yes=True))
    if code == ExitCode.OK:
        click.echo(_summary(site, folder, time.monotonic() - began))
    return code


def _lab_site() -> Path:
    """layouts/lab of the checkout; an installed package's copy is read-only, so that goes to ./pai-lab."""
    shipped = content_dir() / "layouts" / "lab"
    if (content_dir() / "pyproject.toml").is_file():
        return Path("layouts/lab") if Path("layouts/lab").resolve() == shipped else shipped
    own = Path("pai-lab")
    if not own.exists():
        shutil.copytree(shipped, own)
    return own


def _install_packages(site: Site, *, yes: bool) -> None:
    lacking = component_requirements(site)
    if not lacking:
        return
    _say(f"the dev box lacks the Debian packages {', '.join(lacking)}")
    if not yes and not click.confirm("install them now?", err=True):
        raise PaiError(
            "the components cannot be built without these packages",
            code="quickstart-packages-missing",
            remedy=f"apt-get install {' '.join(lacking)}",
            exit_code=ExitCode.PREFLIGHT_FAILED,
        )
    install(lacking)


def _step(number: int, title: str) -> None:
    _say(f"[{number}/4] {title}")


def _say(line: str) -> None:
    click.echo(line, err=True)


def _count(site: Site) -> str:
    return plural(len(site.present_machines), "machine is", "machines are")


def _summary(site: Site, folder: Path, seconds: float) -> str:
    here = f"--site {folder}"
    return "\n".join(
        [
            "",
            f"{_count(site)} a verified Kubernetes cluster after {seconds / 60:.1f} min.",
            f"  ./pai-install kubectl {here} -- get nodes     look at it",
            f"  ./pai-install apply {here}                    again: changes nothing",
            f"  ./pai-install lab ssh {here} {site.control_planes[0].hostname}    log in to a machine",
            f"  ./pai-install lab down {here} --yes           remove it all",
        ]
    )
