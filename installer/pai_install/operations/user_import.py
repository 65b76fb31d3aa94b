"""Make all persons in a file users, members of groups."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from pai_install.errors import ExitCode, PaiError
from pai_install.operations.user import UsersOperation, additions, require_groups
from pai_install.plan.model import Plan
from pai_install.plan.observation import Observation
from pai_install.site.groups import groups_of
from pai_install.site.model import Site
from pai_install.system.parameters import Parameter
from pai_install.system.words import plural
from pai_install.users.import_file import ImportedUser
from pai_install.users.model import unknown_groups


class UserImport(UsersOperation):
    """Creates the missing accounts of many users and adds them to groups. Existing memberships stay."""

    name: ClassVar[str] = "user import"
    summary: ClassVar[str] = "Add the users of a file."

    users: Annotated[tuple[ImportedUser, ...], Parameter(hidden=True)] = Field(description="Users and their groups.")

    def require(self, site: Site) -> None:
        """Groups of the site. Names the users of unknown groups."""
        require_groups(site, ())
        known = [group.name for group in groups_of(site.services)]
        unknown = {one.name: unknown_groups(one.groups, known) for one in self.users}
        lines = [f"{user}: {', '.join(names)}" for user, names in unknown.items() if names]
        if lines:
            raise PaiError(
                f"cannot import {plural(len(lines), 'user')}: their groups are not in this site",
                code="unknown-group",
                details="\n".join(lines[:50]),
                remedy="define the groups in authentication.group-manager and apply, or correct the file",
                exit_code=ExitCode.USAGE,
            )

    def plan(self, site: Site, observation: Observation) -> Plan:
        """One call for each object that is missing."""
        step = additions({one.name: one.groups for one in self.users}, site, observation)
        nothing = f"all {plural(len(self.users), 'user')} of the file are members of their groups already"
        return Plan((step,) if step else (), observation.inventory, nothing="" if step else nothing)

    def question(self, plan: Plan, hosts: tuple[str, ...]) -> str:
        """How many get access."""
        del plan
        return f"give {plural(len(hosts), 'user')} access"
