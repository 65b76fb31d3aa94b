"""`pai-install inventory`: the Ansible inventory of a site, for plain ansible-playbook."""

from __future__ import annotations

import json
from pathlib import Path

import click

from pai_install.cli._shared.environment import pass_environment
from pai_install.cli.options import site_option
from pai_install.errors import ExitCode
from pai_install.plan.literal import literal
from pai_install.plan.unsecret import without_secrets
from pai_install.run.environment import Environment
from pai_install.run.state import state_of
from pai_install.site import load_site


@click.command
@site_option
@click.option("--show-secrets", is_flag=True, help="Print passwords and logins, too: keep the output to yourself.")
@pass_environment
def command(*, site_dir: Path, show_secrets: bool, environment: Environment) -> int:
    """Print the Ansible inventory of the site as YAML (its JSON form): `ansible-playbook -i FILE playbooks/site.yml`.

    What the site says is marked as text for Ansible ("__ansible_unsafe"), so that none of it is a template.
    Passwords of machines, and values with a login in them, are left out without --show-secrets. It names the sum of
    every component: those that the dev box lacks are fetched.
    """
    site = load_site(site_dir).site
    state = state_of(site_dir)
    found = environment.inventory(site, state, lambda line: click.echo(line, err=True)).as_ansible()
    known_hosts = f"-o UserKnownHostsFile={state.known_hosts.resolve()}"
    found["all"]["vars"]["ansible_ssh_common_args"] = known_hosts
    printed = literal(found)
    if not show_secrets and without_secrets(printed) != printed:
        printed = without_secrets(printed)
        click.echo("passwords and logins are left out; --show-secrets prints them", err=True)
    click.echo(json.dumps(printed, indent=2))
    return ExitCode.OK
