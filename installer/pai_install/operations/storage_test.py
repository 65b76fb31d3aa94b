"""Try storages on the workers: mount, write, read back, measure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Annotated, Any, ClassVar

from pydantic import Field

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.documents.validate import did_you_mean
from pai_install.errors import ExitCode, PaiError
from pai_install.operations.operation import Operation
from pai_install.plan.leader import leader_of
from pai_install.plan.model import HostStep, Plan, Playbook, Step
from pai_install.plan.observation import Observation
from pai_install.site.model import Machine, Site
from pai_install.site.selection import require_present
from pai_install.storage.compile import current_grants
from pai_install.storage.model import Grant
from pai_install.system.parameters import Parameter

MOUNT = "storage-mount"
_WHERE = "section storages of services-configuration.yaml"
_GRANT = "name it in storageConfigs of a group in services-configuration.yaml, then pai-install apply"


class StorageTest(Operation):
    """Every worker mounts each group's storages, in a pod in the group's namespace."""

    name: ClassVar[str] = "storage test"
    summary: ClassVar[str] = "Test the storages on every worker."
    configures: ClassVar[bool] = True  # the image of the pods is known with the site's components
    storages: Annotated[tuple[str, ...], Parameter(positional=True, metavar="[NAME]...")] = Field(
        (), description="Only these storages; empty: all that a group may mount."
    )
    limit: Annotated[tuple[str, ...], Parameter(metavar="HOST,...", split=True)] = Field(
        (), description="Only these workers of the site."
    )
    all_grants: bool = Field(default=False, description="Test as every group with a grant, not only as the first.")
    size_mib: Annotated[int, Parameter(flag="--size", metavar="MIB")] = Field(
        16, ge=1, le=24, description="Size of the test file."
    )
    timeout_s: Annotated[int, Parameter(flag="--timeout", metavar="SECONDS")] = Field(
        150, ge=30, le=3600, description="Time limit of one storage on one worker, in seconds."
    )

    def require(self, site: Site) -> None:
        """Checks that storages and workers are in the site, and that named storages have a grant."""
        known = [storage.name for storage in site.services.storages or ()]
        if not known:
            raise _refusal(
                "site-without-storages", "this site has no storages", f"{_WHERE} defines them (docs/storage.md)"
            )
        require_present(site, self.limit)
        if strange := [name for name in self.storages if name not in known]:
            raise _refusal(
                "unknown-storage", f"not a storage of this site: {', '.join(strange)}", did_you_mean(strange[0], known)
            )
        if idle := [name for name in _ungranted(site) if name in self.storages]:
            raise _refusal("storage-of-no-group", f"no group may mount {', '.join(idle)}", _GRANT)
        if self.limit and not self._workers(site):
            raise _refusal(
                "limit-not-a-worker",
                f"--limit: not a worker: {', '.join(self.limit)}",
                "jobs mount storages on workers alone",
            )

    def watched(self, site: Site) -> tuple[str, ...]:
        """The control planes: one of them makes the pods."""
        return tuple(machine.hostname for machine in site.control_planes)

    def known(self, site: Site, observation: Observation, plan: Plan) -> tuple[Finding, ...]:
        """Storages that cannot be tried, since no one may mount them."""
        del observation, plan
        return tuple(
            Finding(MOUNT, Verdict.SKIP, "cluster", f"{name}: not tested, no group may mount it")
            for name in _ungranted(site)
            if not self.storages
        )

    def plan(self, site: Site, observation: Observation) -> Plan:
        """Returns one step on a control-plane node, or none without grants to test."""
        return trial(site, observation, tuple(self._grants(site)), self._workers(site), self.size_mib, self.timeout_s)

    def _workers(self, site: Site) -> tuple[Machine, ...]:
        present = (machine for machine in site.present_machines if machine.worker)
        return tuple(machine for machine in present if not self.limit or machine.hostname in self.limit)

    def _grants(self, site: Site) -> Iterator[Grant]:
        """Those to try: of each storage the first, or all."""
        grants = (grant for grant in current_grants(site) if not self.storages or grant.storage.name in self.storages)
        return iter(grants) if self.all_grants else _first(grants)


def trial(
    site: Site,
    observation: Observation,
    grants: Collection[Grant],
    workers: Collection[Machine],
    size_mib: int = 16,
    timeout_s: int = 150,
) -> Plan:
    """Returns pods that mount the grants on the workers, without steps if there are none."""
    leader = leader_of(site, observation.machines)
    variables = {
        "storage_grants": [_granted(grant) for grant in grants],
        "storage_workers": [machine.hostname for machine in workers],
        "storage_mib": size_mib,
        "storage_timeout": timeout_s,
    }
    host = HostStep(leader, ("asked for",))
    title = "Try the storages on the workers"
    step = Step("storage-test", title, (host,), Playbook("storage-test.yml", variables), looks=True)
    steps = (step,) if grants and workers else ()
    return Plan(steps, observation.inventory, observation.unreachable, leader)


def _first(grants: Iterable[Grant]) -> Iterator[Grant]:
    seen: set[str] = set()
    for grant in grants:
        if grant.storage.name not in seen:
            seen.add(grant.storage.name)
            yield grant


def _granted(grant: Grant) -> dict[str, Any]:
    """A grant as module pai_storage_probe takes it."""
    storage = grant.storage
    return {
        "storage": storage.name,
        "namespace": grant.namespace,
        "claim": grant.claim,
        "read_only": not storage.written,
        "machine": storage.machine or "",
    }


def _ungranted(site: Site) -> tuple[str, ...]:
    granted: Collection[str] = {grant.storage.name for grant in current_grants(site)}
    return tuple(storage.name for storage in site.services.storages or () if storage.name not in granted)


def _refusal(code: str, message: str, remedy: str) -> PaiError:
    return PaiError(message, code=code, remedy=remedy, exit_code=ExitCode.USAGE)
