"""The verbs of the command line, in the sections of `--help`. A verb is imported only when it runs."""

from __future__ import annotations

import click

from pai_install.cli.lazy import SuggestingGroup, imported
from pai_install.cli.site_names import complete_names

# section -> verb -> one line of help. The module of a verb is cli/<verb>.py and its click command is named `command`.
SECTIONS: dict[str, dict[str, str]] = {
    "Start": {
        "quickstart": "Install a cluster in the lab and run a GPU job on it.",
        "init": "Write a commented site to start from.",
        "lab": "Manage throw-away machines: up, down, status, ssh.",
    },
    "Site": {
        "validate": "Check the site's files and show a summary.",
        "migrate": "Convert a site of OpenPAI before v1.5.",
        "preflight": "Check machines before an installation.",
        "components": "List, fetch, and verify third-party programs.",
        "inventory": "Print the Ansible inventory of the site.",
    },
    "Cluster": {
        "plan": "Show the changes that apply would make.",
        "apply": "Install or update the cluster, and verify it.",
        "status": "Show machines, cluster, drift, and the last run.",
        "logs": "Print logs of nodes, services, pods, and jobs.",
        "verify": "Test nodes, pods, DNS, services, runtimes, and time.",
        "upgrade": "Upgrade Kubernetes, runtimes, and add-ons, node by node.",
        "reset": "Remove the cluster from all machines.",
    },
    "Nodes": {
        "node": "Add, remove, replace, reboot, cordon, and drain nodes.",
        "health": "Find unhealthy nodes and GPUs, with cause and remedy.",
        "alerts": "List firing alerts, silence a node, and test notifications.",
        "monitoring": "Export scrapes, rules, and dashboards for your own monitoring.",
    },
    "Tenants": {
        "user": "Manage users, their groups, and their access.",
        "vc": "Show, simulate, and change virtual clusters.",
        "storage": "Manage the storages that jobs mount.",
        "scheduler": "Test or switch the batch scheduler.",
    },
    "Jobs": {
        "job": "Submit, list, inspect, and stop jobs.",
        "usage": "Show GPU hours by user, group, job, SKU, or node.",
    },
    "Maintenance": {
        "certs": "Show and renew certificates.",
        "backup": "Save the cluster's state to one file.",
        "restore": "Restore the cluster from a backup.",
        "registry": "Manage registry mirrors and the registry cache.",
        "support-bundle": "Collect logs and reports in one file, without secrets.",
        "kubectl": "Run kubectl on the site's cluster.",
    },
    "Reference": {
        "explain": "Explain a check: its input, its rule, and its remedy.",
        "operations": "List the operations and their arguments.",
        "schema": "Print the JSON Schema of a site file or a report.",
        "completion": "Print the completion script for bash, zsh, or fish.",
    },
}
VERBS: dict[str, str] = {verb: line for verbs in SECTIONS.values() for verb, line in verbs.items()}
_NEWCOMER = (
    ("pai-install quickstart", "a cluster in the lab, with a GPU job on it"),
    ("pai-install init --site DIR", "the files of your own site"),
    ("pai-install plan --site DIR", "the changes, before apply makes them"),
)


class Verbs(SuggestingGroup):
    """Lists verbs without their modules."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """All verbs."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Returns a command by name, or None."""
        if cmd_name not in VERBS:
            return None
        command = imported(cmd_name.replace("-", "_"))
        complete_names(command, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The sections, and last the three commands that a newcomer needs."""
        column = max(map(len, VERBS))
        for section, verbs in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(verb.ljust(column), line) for verb, line in verbs.items()])
        with formatter.section("New here"):
            formatter.write_dl(_NEWCOMER)
