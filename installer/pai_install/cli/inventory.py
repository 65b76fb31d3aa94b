"""`pai-install inventory`: the Ansible inventory of a site, for plain ansible-playbook."""

from __future__ import annotations

import json

import click

from pai_install.app.context import App
from pai_install.cli.command import reading
from pai_install.cli.options import text_only
from pai_install.cli.output import echo
from pai_install.cli.terminal import Terminal
from pai_install.errors import ExitCode
from pai_install.plan.literal import literal
from pai_install.plan.redacted_inventory import without_secrets


@click.command
@reading(formats=text_only)
@click.option("--show-secrets", is_flag=True, help="Also print passwords and logins. Keep the output private.")
def command(*, app: App, terminal: Terminal, show_secrets: bool) -> int:
    """Print the site's Ansible inventory as JSON, for `ansible-playbook -i FILE playbooks/site.yml`.

    The site's values are marked as text ("__ansible_unsafe"), so that Ansible does not evaluate templates in them.
    Passwords, and values with a login, are left out without --show-secrets. The inventory needs the checksum of every
    component. Missing components are fetched.
    """
    found = app.environment.inventory(app.site, app.state, terminal.inform).as_ansible()
    known_hosts = f"-o UserKnownHostsFile={app.state.known_hosts.resolve()}"
    found["all"]["vars"]["ansible_ssh_common_args"] = known_hosts
    printed = literal(found)
    if not show_secrets and without_secrets(printed) != printed:
        printed = without_secrets(printed)
        terminal.inform("passwords and logins are left out; --show-secrets prints them")
    echo(json.dumps(printed, indent=2))
    return ExitCode.OK
