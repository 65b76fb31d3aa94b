"""Common base of runs and use cases: one site, one front end, and connections that open once."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from pai_install.app.cluster_context import ClusterContext
from pai_install.app.frontend import Frontend
from pai_install.cluster.client import Impersonation
from pai_install.run.environment import Environment
from pai_install.run.workspace import Workspace
from pai_install.storage.rotation import pending_action
from pai_install.users.directory import api_user
from pai_install.users.model import SUBMITTERS

if TYPE_CHECKING:
    from pai_install.report.model import Outcome


class RunOptions(BaseModel):
    """Options of a run of any operation.

    check: preview only. plan_file: the run must match this saved plan. forced_checks: preflight checks to ignore.
    services, layout: texts in place of the site's files. None for the files.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    check: bool = False
    plan_file: Path | None = None
    forced_checks: tuple[str, ...] = ()
    services: str | None = None
    layout: str | None = None


class AppContext(Workspace, ClusterContext):
    """A workspace with a front end.

    outcomes: the results of its runs so far. announced: whether warnings of the site were told.
    """

    def __init__(
        self, site_dir: Path, environment: Environment, frontend: Frontend, *, accept_new_host_keys: bool = False
    ) -> None:
        super().__init__(site_dir, environment, accept_new_host_keys=accept_new_host_keys)
        self.frontend = frontend
        self.outcomes: list[Outcome] = []
        self.announced = False

    @property
    def user(self) -> str:
        """The login on the controller host."""
        return getpass.getuser()

    def submitter(self, user: str) -> Impersonation | None:
        """The user with the rights of members: the client is an administrator."""
        return Impersonation(api_user(user), (SUBMITTERS,))

    def forget_site(self) -> None:
        """The next use reads the site again."""
        self._loaded = None

    def announce_rotations(self) -> None:
        """Says which rotations of storages are unfinished."""
        for name, rotation in self.site.rotations.items():
            if line := pending_action(name, rotation):
                self.notify(f"storage {name}: {line}")
