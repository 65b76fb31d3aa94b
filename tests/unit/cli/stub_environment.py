"""An environment without Ansible and components: three machines, a plan per test, events per playbook."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256

from pai_install.checks.finding import Finding
from pai_install.checks.runner import force
from pai_install.cli import main
from pai_install.cluster.client import ClusterClient
from pai_install.cluster.machines import Machines
from pai_install.engine.base import Engine, Event
from pai_install.health.gate import passed
from pai_install.operations.install import Install
from pai_install.plan.model import Inventory, Plan, Step
from pai_install.plan.observation import Observation
from pai_install.preflight.report import PreflightReport
from pai_install.registry.compile import served_names
from pai_install.registry.identity import open_identity
from pai_install.run.actions import LocalWorker
from pai_install.run.environment import Environment, ProductEnvironment
from pai_install.run.layout_file import forgetting_worker, writing_worker
from pai_install.run.state import RunFolder, StateFolder, open_state
from pai_install.run.virtual_clusters import object_status_worker
from pai_install.site.load import load_site
from pai_install.site.model import Site
from pai_install.system.proc import Completed
from tests.unit.cluster.fake import FakeCluster
from tests.unit.cluster.fake_machines import FakeMachines
from tests.unit.runs import SECRET, ScriptedEngine, done, event

LAYOUT = """\
machine-sku:
  cpu:
    mem: 8Gi
    cpu: {vcore: 4}
machine-list:
  - {hostname: master, hostip: 10.0.0.1, machine-type: cpu, pai-master: "true"}
  - {hostname: one, hostip: 10.0.0.2, machine-type: cpu, pai-worker: "true"}
  - {hostname: two, hostip: 10.0.0.3, machine-type: cpu, pai-worker: "true"}
"""


NAMES = ("master", "one", "two")


def facts(name: str, *, touched: bool = True) -> dict[str, Any]:
    """What the fact module gives of a machine. touched: whether a role was ever on it."""
    return {"pai": {"hostname": name, "roles": {"base": {}} if touched else {}}}


@dataclass
class World(Environment):
    """What the machines are like in a test. phases: what there is to do; script: playbook -> events.

    stocked_up: whether all components are on the controller host. new_machines: machines that no role was ever on;
    in_the_way: what preflight finds there. api: the Kubernetes API. fed: input of programs
    in pods; feeds: their exit status.
    """

    phases: tuple[Step, ...] = ()
    script: dict[str, Sequence[Event | BaseException]] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    stocked_up: bool = True
    new_machines: tuple[str, ...] = ()
    in_the_way: tuple[Finding, ...] = ()
    sick: tuple[Finding, ...] = ()
    promises: tuple[Finding, ...] = ()
    api: FakeCluster = field(default_factory=FakeCluster)
    outputs: FakeMachines = field(default_factory=FakeMachines)
    asked: list[Mapping[str, Any]] = field(default_factory=list)
    fed: list[tuple[tuple[str, ...], bytes]] = field(default_factory=list)
    feeds: int | BaseException = 0
    ansible: ScriptedEngine = field(init=False)

    def __post_init__(self) -> None:
        answers = (
            event("ok", name, "Observe", ansible_facts=facts(name, touched=name not in self.new_machines))
            for name in NAMES
        )
        self.script.setdefault("observe.yml", done(*answers))
        self.ansible = ScriptedEngine(self.script)

    def install_plan(self, operation: Install, observation: Observation) -> Plan:
        """What stands in for `Install.plan`."""
        self.asked.append({
            "observed": sorted(observation.machines), "unreachable": dict(observation.unreachable),
            "phases": operation.phases, "limit": operation.limit, "unproven": dict(observation.unproven),
        })  # fmt: skip
        return Plan(self.phases, observation.inventory, dict(observation.unreachable), "master")

    def settings(self) -> Inventory:
        """One control plane, two workers, one secret."""
        return Inventory(
            {"control_plane": ("master",), "workers": ("one", "two")},
            {
                "ansible_become_password": SECRET,
                "control_plane_version": "1.36.3",
                "control_plane_endpoint": "api:7443",
            },
            {"master": {}, "one": {}, "two": {}},
        )

    def inventory(
        self, site: Site, state: StateFolder, notify: object, versions: Mapping[str, Mapping[str, str]] | None = None
    ) -> Inventory:
        """As above."""
        del site, state, notify, versions
        return self.settings()

    def connections(self, site: Site) -> Inventory:
        """The product's."""
        return ProductEnvironment().connections(site)

    def stocked(self, site: Site) -> bool:
        """As the test says."""
        del site
        return self.stocked_up

    def image(self, site: Site, state: StateFolder, name: str, notify: object) -> str:
        """One of that name."""
        del site, state, notify
        return f"registry.pai.internal/{name}:stable@sha256:00"

    @contextmanager
    def engine(self, state: StateFolder, run: RunFolder, *, accept_new: bool) -> Iterator[Engine]:
        """The scripted one."""
        del state, run
        self.asked.append({"accept_new": accept_new})
        yield self.ansible

    def preflight(self, engine: Engine, site: Site, hosts: tuple[str, ...], forced: tuple[str, ...]) -> PreflightReport:
        """As the test says."""
        del engine
        self.asked.append({"preflight": hosts, "forced": forced})
        return PreflightReport(site.directory.name, force(self.in_the_way, forced), forced, 1.0)

    @contextmanager
    def cluster(self, site: Site, state: StateFolder, *, accept_new: bool) -> Iterator[ClusterClient]:
        """As the test says."""
        del site, state, accept_new
        yield self.api

    def feed_pod(
        self, site: Site, state: StateFolder, words: Sequence[str], content: IO[bytes], on_size: Callable[[int], None]
    ) -> Completed:
        """As the test says. The program in the pod reads everything."""
        del site, state
        self.fed.append((tuple(words), content.read()))
        on_size(len(self.fed[-1][1]))
        if isinstance(self.feeds, BaseException):
            raise self.feeds
        return Completed(("ssh",), self.feeds, "", "no space left" if self.feeds else "")

    @contextmanager
    def machines(self, site: Site, state: StateFolder, *, accept_new: bool) -> Iterator[Machines]:
        """As the test says."""
        del site, state, accept_new
        yield self.outputs

    def local_work(
        self, site: Site, state: StateFolder, engine: Engine, cluster: ClusterClient, notify: Callable[[str], None]
    ) -> Mapping[str, LocalWorker]:
        """The health check and the scheduler's self-test find what the test says; the rest asks the test's API."""
        del engine, notify
        return {
            "forget": forgetting_worker(site.directory, state),
            "layout": writing_worker(site.directory),
            "health": lambda _hosts, _arguments: self.sick,
            "health-gate": lambda _hosts, _arguments: passed(self.sick),
            "scheduler-test": lambda _hosts, arguments: self.played(arguments),
            "scheduler-switch": lambda _hosts, arguments: self.switched(arguments),
            "virtual-clusters": object_status_worker(cluster, sleep=lambda _seconds: None),
        }

    def played(self, arguments: Mapping[str, Any]) -> tuple[Finding, ...]:
        """What the scheduler's self-test finds."""
        self.asked.append({"scheduler-test": dict(arguments)})
        return self.promises

    def switched(self, arguments: Mapping[str, Any]) -> tuple[Finding, ...]:
        """The old scheduler goes."""
        self.asked.append({"scheduler-switch": dict(arguments)})
        return ()


_entered: list[World] = []


def enter(world: World) -> World:
    """The following command lines run in this world, until `leave`."""
    _entered.append(world)
    return world


def leave() -> None:
    """Command lines run in the product's environment again."""
    _entered.clear()


def run(argv: Sequence[str]) -> int:
    """Runs a command line in the world that was entered last."""
    return main.run(argv, _entered[-1] if _entered else None)


CONSOLE = """\
authentication: {group-manager: {grouplist: [{groupname: nlp}]}}
scheduler: {type: kueue}
virtual-clusters: [{name: default, groups: [nlp]}]
"""


def add_console(site: Path) -> list[str]:
    """Gives the site a console after its first run. Returns what people are told about it."""
    (site / "services-configuration.yaml").write_text(CONSOLE)
    loaded = load_site(site).site
    console = open_identity(open_state(site).registry, served_names(loaded), datetime.now(UTC)).console
    assert console is not None
    found = x509.load_pem_x509_certificate(console.certificate.encode()).fingerprint(SHA256())
    return ["console: https://10.0.0.1/", f"certificate of the console: SHA-256 {found.hex(':').upper()}"]


def write_site(folder: Path) -> Path:
    """A valid site of three machines."""
    folder.mkdir(exist_ok=True)
    (folder / "layout.yaml").write_text(LAYOUT)
    (folder / "config.yaml").write_text("user: admin\npassword: hunter22-planted\n")
    return folder
