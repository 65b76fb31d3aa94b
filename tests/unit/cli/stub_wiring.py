"""A Wiring without Ansible and components: two machines, a plan per test, events per playbook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pai_install.checks.finding import Finding
from pai_install.checks.runner import force
from pai_install.engine.base import Engine, Event
from pai_install.plan.model import Inventory, Plan, PlannedPhase
from pai_install.plan.observed import Observed
from pai_install.preflight.report import PreflightReport
from pai_install.run.state import RunFolder, StateFolder
from pai_install.run.wiring import Wiring
from pai_install.site.load import load_site
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


@dataclass
class World:
    """What the machines are like in a test. phases: what there is to do; script: playbook -> events.

    stocked: whether all components are on this box. newcomers: machines that no role was ever on;
    in_the_way: what preflight finds there.
    """

    phases: tuple[PlannedPhase, ...] = ()
    script: dict[str, Sequence[Event | BaseException]] = field(default_factory=dict)
    standing: tuple[Finding, ...] = ()
    stocked: bool = True
    newcomers: tuple[str, ...] = ()
    in_the_way: tuple[Finding, ...] = ()
    asked: list[Mapping[str, Any]] = field(default_factory=list)
    engine: ScriptedEngine = field(init=False)

    def __post_init__(self) -> None:
        names = ("master", "one", "two")
        facts = (event("ok", name, "Observe", ansible_facts={"pai": {"hostname": name}}) for name in names)
        self.script.setdefault("observe.yml", done(*facts))
        self.engine = ScriptedEngine(self.script)

    def wiring(self) -> Wiring:
        """The parts that a verb gets."""
        return Wiring(
            load=load_site,
            inventory=lambda *_: self.inventory(),
            stocked=lambda _site: self.stocked,
            parse=lambda result: Observed(**{"hostname": "", **result["ansible_facts"]["pai"]}),
            plan=self._plan,
            engine=self._engine,
            gates=lambda *_: {},
            newcomers=lambda *_: self.newcomers,
            preflight=self._preflight,
            judge=lambda *_: self.standing,
        )

    def inventory(self) -> Inventory:
        """One control plane, two workers, one secret."""
        return Inventory(
            {"control_plane": ("master",), "workers": ("one", "two")},
            {"ansible_become_password": SECRET},
            {"master": {}, "one": {}, "two": {}},
        )

    def _plan(self, site: Any, inventory: Inventory, observed: Mapping[str, Any], **words: Any) -> Plan:
        del site
        self.asked.append({"observed": sorted(observed), **words})
        return Plan(self.phases, inventory, dict(words["unreachable"] or {}), "master")

    def _preflight(self, engine: Engine, site: Any, hosts: tuple[str, ...], forced: tuple[str, ...]) -> PreflightReport:
        del engine
        self.asked.append({"preflight": hosts, "forced": forced})
        return PreflightReport(site.directory.name, force(self.in_the_way, forced), forced, 1.0)

    def _engine(self, state: StateFolder, run: RunFolder, accept_new: bool) -> AbstractContextManager[Engine]:
        del state, run
        self.asked.append({"accept_new": accept_new})

        @contextmanager
        def opened() -> Iterator[Engine]:
            yield self.engine

        return opened()


def write_site(folder: Path) -> Path:
    """A valid site of three machines."""
    folder.mkdir(exist_ok=True)
    (folder / "layout.yaml").write_text(LAYOUT)
    (folder / "config.yaml").write_text("user: admin\npassword: hunter22-planted\n")
    return folder
