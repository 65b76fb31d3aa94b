"""The environment of a run: components, machines, the cluster, checks. Tests replace it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING

from pai_install.errors import PaiError
from pai_install.run.state import RunFolder, StateFolder
from pai_install.site.model import Site
from pai_install.system.content import content_dir

if TYPE_CHECKING:  # verbs that only read load none of it
    from pai_install.cluster.client import ClusterClient
    from pai_install.cluster.machines import Machines
    from pai_install.components.model import ComponentSet, Selection
    from pai_install.components.source import Source
    from pai_install.engine.base import Engine
    from pai_install.plan.model import Inventory
    from pai_install.plan.versions import Versions
    from pai_install.preflight.report import PreflightReport
    from pai_install.registry.identity import Identity
    from pai_install.run.actions import LocalWorker
    from pai_install.system.proc import Completed

Notify = Callable[[str], None]


class Environment(ABC):
    """The environment of a run."""

    @abstractmethod
    def inventory(
        self, site: Site, state: StateFolder, notify: Notify, versions: Mapping[str, Versions] | None = None
    ) -> Inventory:
        """Returns the site's inventory with the settings of every role. Downloads its components.

        versions: machine -> component -> desired version, by default the catalogue's. Raises PaiError if a component is
        unavailable.
        """

    @abstractmethod
    def connections(self, site: Site) -> Inventory:
        """Returns the inventory without settings: connections to machines, and data for the checks of the cluster."""

    @abstractmethod
    def stocked(self, site: Site) -> bool:
        """Whether `inventory` would find all components on the controller host."""

    @abstractmethod
    def image(self, site: Site, state: StateFolder, name: str, notify: Notify) -> str:
        """Returns the reference with digest of a component's image for pods. Raises as `inventory`."""

    @abstractmethod
    def engine(self, state: StateFolder, run: RunFolder, *, accept_new: bool) -> AbstractContextManager[Engine]:
        """Returns an engine that keeps its connections. accept_new: record unknown host keys."""

    @abstractmethod
    def preflight(self, engine: Engine, site: Site, hosts: tuple[str, ...], forced: tuple[str, ...]) -> PreflightReport:
        """Checks machines before the first change. forced: checks with ignored failures."""

    @abstractmethod
    def cluster(self, site: Site, state: StateFolder, *, accept_new: bool) -> AbstractContextManager[ClusterClient]:
        """A client of the Kubernetes API that connects when it is first asked."""

    @abstractmethod
    def feed_pod(
        self, site: Site, state: StateFolder, words: Sequence[str], content: IO[bytes], on_size: Callable[[int], None]
    ) -> Completed:
        """Runs kubectl with those words and a file as its input. on_size: takes the bytes that are sent so far."""

    @abstractmethod
    def machines(self, site: Site, state: StateFolder, *, accept_new: bool) -> AbstractContextManager[Machines]:
        """The machines of the site, to read from. Each is connected when it is first asked."""

    @abstractmethod
    def local_work(
        self, site: Site, state: StateFolder, engine: Engine, cluster: ClusterClient, notify: Notify
    ) -> Mapping[str, LocalWorker]:
        """Returns name of work on the controller host -> its function."""


class ProductEnvironment(Environment):
    """The product's environment. It imports most modules on first use: `--help` must not load Ansible."""

    def inventory(
        self, site: Site, state: StateFolder, notify: Notify, versions: Mapping[str, Versions] | None = None
    ) -> Inventory:
        """Returns the inventory of the site and its components. The store has the components of all machines."""
        from pai_install.engine.content import part_digests  # noqa: PLC0415
        from pai_install.parts.registry import make_context  # noqa: PLC0415
        from pai_install.plan.inventory import build_inventory, combined, connection  # noqa: PLC0415
        from pai_install.run.own_rules import check_own_rules  # noqa: PLC0415

        for machine in site.present_machines:
            connection(machine)  # an unavailable password is an error before anything is fetched
        identity = _identity(site, state, notify)
        choices = _choices(site, versions or {})
        main, *_ = choices
        others = [(selection, entry) for selection, entry in choices.items() if selection != main]
        sets = {selection: _fetched(site, selection, source, notify) for selection, (source, _) in choices.items()}
        check_own_rules(site, main, choices[main][0])
        # One store serves all machines, so it holds the components of every selection.
        digests, whole = part_digests(content_dir()), sets[main].also(*(sets[it] for it, _ in others))
        inventory = build_inventory(make_context(site, whole, state.path, identity), digests)
        # Machines keep their installed versions until an upgrade, so they may need other settings than the leader.
        for selection, (_, hosts) in others:
            other = build_inventory(make_context(site, sets[selection], state.path, identity), digests)
            inventory = combined(inventory, dict.fromkeys(hosts, other))
        return inventory

    def connections(self, site: Site) -> Inventory:
        """Connections, and the version and address that the Kubernetes API should have."""
        from pai_install.components.model import ComponentSet  # noqa: PLC0415
        from pai_install.parts.registry import make_context  # noqa: PLC0415
        from pai_install.plan.inventory import connection, groups, observed_by  # noqa: PLC0415
        from pai_install.plan.model import Inventory  # noqa: PLC0415

        version = _choice(site)[0].kubernetes_version
        endpoint = make_context(site, ComponentSet((), (), version), site.directory).endpoint
        wanted = {"control_plane_version": version, "control_plane_endpoint": endpoint, **observed_by()}
        return Inventory(
            groups(site), wanted, {machine.hostname: connection(machine) for machine in site.present_machines}
        )

    def stocked(self, site: Site) -> bool:
        """Whether the cache holds them all."""
        from pai_install.components.fetch import cached  # noqa: PLC0415

        return all(cached(*_choice(site)).values())

    def image(self, site: Site, state: StateFolder, name: str, notify: Notify) -> str:
        """As the component store serves it."""
        from pai_install.parts.registry import make_context  # noqa: PLC0415

        return make_context(site, site_components(site, notify), state.path).image(name)

    @contextmanager
    def engine(self, state: StateFolder, run: RunFolder, *, accept_new: bool) -> Iterator[Engine]:
        """Ansible."""
        from pai_install.engine.runner import RunnerEngine  # noqa: PLC0415
        from pai_install.engine.shards import ShardedEngine  # noqa: PLC0415

        engine = RunnerEngine(
            content_dir(), state.work, state.known_hosts, log=run.log, accept_new_host_keys=accept_new
        )
        with run.in_use(), engine:
            yield ShardedEngine(engine)

    def preflight(self, engine: Engine, site: Site, hosts: tuple[str, ...], forced: tuple[str, ...]) -> PreflightReport:
        """The verb preflight's checks."""
        from pai_install.preflight.run import run  # noqa: PLC0415

        return run(engine, site, hosts=hosts, forced=forced)

    def cluster(self, site: Site, state: StateFolder, *, accept_new: bool) -> AbstractContextManager[ClusterClient]:
        """The API of the first control plane that answers, over SSH."""
        from pai_install.cluster.over_ssh import open_cluster  # noqa: PLC0415

        return open_cluster(site, state.known_hosts, accept_new=accept_new)

    def feed_pod(
        self, site: Site, state: StateFolder, words: Sequence[str], content: IO[bytes], on_size: Callable[[int], None]
    ) -> Completed:
        """On the first control plane that answers, over SSH."""
        from pai_install.cluster.over_ssh import fed_kubectl  # noqa: PLC0415

        return fed_kubectl(site, state.known_hosts, words, content, on_size)

    def machines(self, site: Site, state: StateFolder, *, accept_new: bool) -> AbstractContextManager[Machines]:
        """Over SSH."""
        from pai_install.cluster.machines import open_machines  # noqa: PLC0415

        return open_machines(site, state.known_hosts, accept_new=accept_new)

    def local_work(
        self, site: Site, state: StateFolder, engine: Engine, cluster: ClusterClient, notify: Notify
    ) -> Mapping[str, LocalWorker]:
        """Returns the machines' health, the scheduler's self-test, the end of an old scheduler, and virtual
        clusters.
        """
        from pai_install.health.gate import health_gate, passed  # noqa: PLC0415
        from pai_install.run.backup import backup_worker  # noqa: PLC0415
        from pai_install.run.layout_file import forgetting_worker, writing_worker  # noqa: PLC0415
        from pai_install.run.scheduler_switch import scheduler_switch  # noqa: PLC0415
        from pai_install.run.self_test.worker import self_test  # noqa: PLC0415
        from pai_install.run.virtual_clusters import object_status_worker  # noqa: PLC0415

        check = health_gate(site, state.health, engine, notify)
        test = self_test(cluster, state.path / "scheduler-test.json")
        return {
            "health": lambda hosts, _arguments: check(hosts),
            "backup": backup_worker(site, state),
            "health-gate": lambda hosts, _arguments: passed(check(hosts)),
            "scheduler-test": test,
            "scheduler-switch": scheduler_switch(cluster, site.directory),
            "virtual-clusters": object_status_worker(cluster),
            "forget": forgetting_worker(site.directory, state),
            "layout": writing_worker(site.directory),
        }


def _identity(site: Site, state: StateFolder, notify: Notify) -> Identity:
    """Returns the identity of component store and cache, created by the first run."""
    from pai_install.registry.compile import served_names, wants_cache  # noqa: PLC0415
    from pai_install.registry.identity import open_identity  # noqa: PLC0415
    from pai_install.registry.rotation import port_rotation_notice  # noqa: PLC0415

    if not state.registry.exists():
        notify(f"made the site's own authority, which machines know their registries by: keep {state.registry}")
    identity = open_identity(state.registry, served_names(site), datetime.now(UTC))
    if wants_cache(site) and (line := port_rotation_notice(identity)):
        notify(line)
    return identity


def site_components(site: Site, notify: Notify) -> ComponentSet:
    """Returns every component of the site, verified. Downloads uncached ones.

    Raises PaiError if a component is unavailable.
    """
    return _fetched(site, *_choice(site), notify)


def _fetched(site: Site, selection: Selection, source: Source, notify: Notify) -> ComponentSet:
    from pai_install.components.fetch import fetch  # noqa: PLC0415

    try:
        # A failed download hides whether the site is valid, so the error says it.
        return fetch(selection, source, progress=notify)
    except PaiError as error:
        error.details = "\n".join(filter(None, (error.details, _known(site))))
        raise


def _known(site: Site) -> str:
    """Returns the facts that need no components."""
    from pai_install.site.summary import headline  # noqa: PLC0415

    needs = "plan, apply and inventory need the sum of every component; validate, preflight and status need none"
    return f"the site itself is valid: {headline(site)}; {needs}"


def cached_program(site: Site, name: str) -> Path | None:
    """Returns a cached program of the site's components, verified, or None. Downloads nothing."""
    from pai_install.components.fetch import cached  # noqa: PLC0415

    entries = filter(None, cached(*_choice(site)).values())
    return next((file.path for entry in entries for file in entry.files if file.name == name), None)


def component_requirements(site: Site) -> tuple[str, ...]:
    """Returns Debian packages that the controller host lacks to fetch uncached components."""
    from pai_install.components.fetch import requirements  # noqa: PLC0415

    return requirements(*_choice(site))


def _choice(site: Site, versions: Versions | None = None) -> tuple[Selection, Source]:
    from pai_install.parts.selection import choose_components  # noqa: PLC0415

    return choose_components(site, versions)


def _choices(site: Site, versions: Mapping[str, Versions]) -> dict[Selection, tuple[Source, list[str]]]:
    """Returns selection -> its source and its machines. The first control-plane node's selection is first."""
    chosen: dict[frozenset[tuple[str, str]], tuple[Selection, Source]] = {}
    found: dict[Selection, tuple[Source, list[str]]] = {}
    # The component store runs on the first control-plane node, so its selection is the main one.
    for machine in sorted(site.present_machines, key=lambda it: it != site.control_planes[0]):
        own = versions.get(machine.hostname, {})
        key = frozenset(own.items())
        if key not in chosen:
            chosen[key] = _choice(site, own)
        selection, source = chosen[key]
        found.setdefault(selection, (source, []))[1].append(machine.hostname)
    return found
