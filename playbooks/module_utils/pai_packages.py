"""Debian packages: which are installed, and which of ours can go without taking any that is not ours."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from typing import Optional

from ansible.module_utils.pai_machine import command

QUESTION_S = 60
REMOVAL_S = 600
APT = ("apt-get", "--yes", "--quiet", "--option=DPkg::Lock::Timeout=300")
# needrestart would restart services that no plan names
QUIETLY = ("env", "DEBIAN_FRONTEND=noninteractive", "NEEDRESTART_SUSPEND=1")
# the driver's packages are held, which is against upgrades: apt would not remove them either
HELD_TOO = "--option=APT::Get::Allow-Change-Held-Packages=true"
# Debian 13's systemd suggests libraries that come with chrony: a suggestion is no need
NEEDS_ALONE = "--option=APT::AutoRemove::SuggestsImportant=false"

# the packages that apt would remove beside those that it is told to
Simulate = Callable[[Collection[str]], Optional[set[str]]]


class PackagesError(Exception):
    """apt failed. The text says why."""


def installed() -> dict[str, str]:
    """Package -> version, of all that are installed."""
    form = "${Package} ${Version} ${db:Status-Status}\n"
    rows = [
        line.split() for line in command(["dpkg-query", "--show", "--showformat", form], QUESTION_S)[1].splitlines()
    ]
    return {row[0]: row[1] for row in rows if len(row) == 3 and row[2] == "installed"}


def removable(
    recorded: Iterable[str], there: Collection[str], before: Collection[str], simulate: Simulate
) -> list[str]:
    """Returns the recorded packages that we installed and no other package needs.

    simulate: the removals of apt for a set of packages, including these. None if apt refuses.
    """
    # A package that was there before us stays, also if a role asked for it.
    wanted = [name for name in dict.fromkeys(recorded) if name in there and name not in before]
    gone = simulate(wanted) if wanted else set()
    if gone is not None and gone <= set(wanted):
        return wanted
    # something else needs one of them: only those that go on their own
    found: list[str] = []
    for name in wanted:
        gone = simulate([*found, name])
        if gone is not None and gone <= {*found, name}:
            found.append(name)
    return found


def simulated(packages: Collection[str]) -> Optional[set[str]]:
    """Returns the removals that apt simulates for these packages, or None if apt refuses."""
    status, output = command([*APT, HELD_TOO, "--simulate", "remove", *sorted(packages)], QUESTION_S)
    return removed_in(output) if status == 0 else None


def unneeded() -> set[str]:
    """Packages that came as needs of others and that nothing needs now."""
    status, output = command([*APT, NEEDS_ALONE, "--simulate", "autoremove"], QUESTION_S)
    return removed_in(output) if status == 0 else set()


def removed_in(output: str) -> set[str]:
    """The packages that a simulation of apt names as removed."""
    return set(re.findall(r"^(?:Remv|Purg) ([^\s:]+)", output, re.MULTILINE))


def install(packages: Collection[str]) -> bool:
    """Installs packages and returns whether this succeeded."""
    words = [*QUIETLY, *APT, "install", "--no-install-recommends", *sorted(packages)]
    return command(words, REMOVAL_S)[0] == 0


def remove(packages: Collection[str], *, purge: bool) -> None:
    """Removes packages. purge: also their settings and data. Raises PackagesError."""
    if not packages:
        return
    verb = "purge" if purge else "remove"
    words = [*QUIETLY, *APT, HELD_TOO, verb, *sorted(packages)]
    status, output = command(words, REMOVAL_S)
    if status != 0:
        raise PackagesError(f"apt-get did not remove {', '.join(sorted(packages))}: {output.strip()[-500:]}")
