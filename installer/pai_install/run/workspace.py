"""The site that one process works on. Each resource opens on first use, and opens once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from pai_install.run.environment import Environment
from pai_install.run.lock import site_lock
from pai_install.run.signals import ending_like_ctrl_c
from pai_install.run.state import RunFolder, StateFolder, open_state, state_of
from pai_install.site.load import LoadedSite, load_site
from pai_install.site.model import Site

if TYPE_CHECKING:
    from pai_install.cluster.client import ClusterClient
    from pai_install.cluster.machines import Machines
    from pai_install.engine.base import Engine
    from pai_install.profile.model import ClusterProfile


class Workspace:
    """Site files, state folder, lock, engine, and cluster client of one process.

    A command of several runs shares them: the machines keep their SSH connections, and the lock is taken once.
    """

    def __init__(self, site_dir: Path, environment: Environment, *, accept_new_host_keys: bool = False) -> None:
        self.site_dir = site_dir
        self.environment = environment
        self.accept_new_host_keys = accept_new_host_keys
        self._loaded: LoadedSite | None = None
        self._machines: Machines | None = None
        self._clients: dict[tuple[str, ...], ClusterClient] = {}
        self._stack = ExitStack()
        self._held: ExitStack | None = None
        self._engine: Engine | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._clients.clear()
        self._stack.__exit__(kind, error, trace)

    @property
    def loaded(self) -> LoadedSite:
        """The site with its warnings. Raises SiteInvalid."""
        if self._loaded is None:
            self._loaded = load_site(self.site_dir)
        return self._loaded

    @property
    def site(self) -> Site:
        """The site. Raises SiteInvalid."""
        return self.loaded.site

    @property
    def profile(self) -> ClusterProfile:
        """The site without its secrets. Raises SiteInvalid."""
        from pai_install.profile.project import profile_of  # noqa: PLC0415 - most verbs need none of it

        return profile_of(self.site)

    def reload(self) -> Site:
        """Reads the site again, after one of its files changed."""
        self._loaded = None
        return self.site

    @property
    def state(self) -> StateFolder:
        """Returns the state folder for reading. It exists after the start of the first run."""
        return state_of(self.site_dir)

    @property
    def cluster(self) -> ClusterClient:
        """Returns a client of the cluster, which connects on its first request."""
        return self.cluster_of(self.site)

    def cluster_of(self, site: Site) -> ClusterClient:
        """A client for a version of the site. One client serves all versions with the same control planes."""
        addresses = tuple(machine.hostip for machine in site.control_planes)
        if addresses not in self._clients:
            context = self.environment.cluster(site, self.state, accept_new=self.accept_new_host_keys)
            self._clients[addresses] = self._stack.enter_context(context)
        return self._clients[addresses]

    @property
    def machines(self) -> Machines:
        """Returns the machines of the site, which are connected on their first request."""
        if self._machines is None:
            context = self.environment.machines(self.site, self.state, accept_new=self.accept_new_host_keys)
            self._machines = self._stack.enter_context(context)
        return self._machines

    @contextmanager
    def hold(self, verb: str) -> Iterator[StateFolder]:
        """Holds the site's lock. SIGTERM counts as Ctrl-C inside. A nested call changes nothing.

        Raises PaiError, with the other holder, while another process has the lock.
        """
        if self._held is not None:
            yield self.state
            return
        state = open_state(self.site_dir)
        with ending_like_ctrl_c(), site_lock(state.path, verb), ExitStack() as held:
            self._held = held  # the engine ends before another process may begin
            try:
                yield state
            finally:
                self._engine = self._held = None

    @contextmanager
    def open_engine(self) -> Iterator[Engine]:
        """An engine that only reads machines. It needs no lock."""
        state = open_state(self.site_dir)
        run = state.new_run(datetime.now(UTC))
        with self.environment.engine(state, run, accept_new=self.accept_new_host_keys) as engine:
            yield engine

    def engine_for(self, run: RunFolder) -> Engine:
        """Returns the engine of the process, which logs to the folder of the first run. Only for the holder
        of the lock.
        """
        if self._held is None:
            raise RuntimeError("an engine needs the site's lock")
        if self._engine is None:
            context = self.environment.engine(self.state, run, accept_new=self.accept_new_host_keys)
            self._engine = self._held.enter_context(context)
        return self._engine
