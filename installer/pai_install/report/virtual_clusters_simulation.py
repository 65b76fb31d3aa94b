"""A simulated submission: as a result and as text. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from pai_install.json_schema import Count, Report, ReportObject
from pai_install.report.table import table
from pai_install.schedulers.simulation import Outcome, QuotaState, Simulation
from pai_install.scheduling.job_request import PodRequest
from pai_install.scheduling.model import Backend, Scheduling
from pai_install.system.words import plural

_Amount = Annotated[float, WithJsonSchema({"type": "number", "minimum": 0})]
_SHOWN = 8
_HEADS: dict[Outcome, str] = {
    "fits": "fits the guarantee",
    "borrows": "would borrow idle quota",
    "preempts": "needs preemption",
    "waits": "must wait for quota",
    "never": "can never run",
    "refused": "is refused",
}
_QUOTA_HEAD = ("SKU", "REQUESTED", "GUARANTEED", "USED", "BORROWED", "IDLE", "BORROWABLE", "PREEMPTIBLE")


class SimulatedRole(ReportObject):
    """Equal pods of the job."""

    role: str = Field(serialization_alias="name")
    count: int = Field(serialization_alias="pods", json_schema_extra={"minimum": 1})
    asks: Mapping[str, _Amount] = Field(description="Resource -> amount of one pod, in cores, bytes, and devices.")


class SimulatedJob(ReportObject):
    """The job."""

    kind: str
    name: str
    namespace: str = Field(description="Empty: the file names none.")
    virtual_cluster: str = Field(description="Empty: the file names none.")
    priority: str | None = Field(description="null: the file names none.")
    roles: tuple[SimulatedRole, ...]


class QuotaHolder(ReportObject):
    """A running job that uses the quota."""

    job: str = Field(validation_alias="name", description="NAMESPACE/NAME.")
    virtual_cluster: str = Field(validation_alias="cluster")
    priority: int
    units: Mapping[str, Count] = Field(description="Resource -> units. Empty: cores.")


class SimulationReport(Report, title="pai-install vc simulate"):
    """The answer for a job that is not submitted yet."""

    schema_version: int = 2
    scheduler: Backend
    job: SimulatedJob
    outcome: Outcome = Field(
        description="preempts: others return borrowed quota, or jobs of lower priority end. refused: by the API."
    )
    why: tuple[str, ...] = Field(description="Numbers or rules behind the outcome.")
    quota: tuple[QuotaState, ...] = Field(description="Quota of the machine types that the job would use.")
    holders: tuple[QuotaHolder, ...] = Field(description="Running jobs that use this quota.")
    notes: tuple[str, ...]


def simulation_report(scheduling: Scheduling, found: Simulation) -> SimulationReport:
    """The report of a simulation."""
    request = found.request
    return SimulationReport(
        scheduler=scheduling.backend,
        job=SimulatedJob(
            kind=request.kind.name,
            name=request.name,
            namespace=request.namespace,
            virtual_cluster=request.queue.cluster,
            priority=request.queue.priority or None,
            roles=tuple(_role(one) for one in request.pods),
        ),
        outcome=found.outcome,
        why=found.reasons,
        quota=found.quotas,
        holders=tuple(map(QuotaHolder.model_validate, found.holders)),
        notes=found.notes,
    )


def _role(pods: PodRequest) -> SimulatedRole:
    requests = {key: round(amount, 3) for key, amount in pods.resources.items()}
    return SimulatedRole(role=pods.role, count=pods.count, asks=requests)


def simulation_text(found: Simulation) -> str:
    """The outcome, the quota, and the jobs that use it."""
    return "".join(f"{line}\n" for line in _lines(found))


def _lines(found: Simulation) -> Iterator[str]:
    request, queue = found.request, found.request.queue
    place = f"{queue.cluster or 'no virtual cluster'}{f', priority {queue.priority}' if queue.priority else ''}"
    name = f"{request.namespace}/{request.name}" if request.namespace else request.name
    yield f"{name} ({place}): {plural(request.pod_count, 'pod')}"
    yield _HEADS[found.outcome]
    yield from (f"  {reason}" for reason in found.reasons)
    if found.quotas:
        rows = [tuple(map(str, asdict(it).values())) for it in found.quotas]
        yield f"\n{table([_QUOTA_HEAD, *rows])}".rstrip()
    if found.holders:
        rows = [(it.cluster, it.name, _units(it.units)) for it in found.holders[:_SHOWN]]
        more = len(found.holders) - _SHOWN
        yield f"\nquota in use by\n{table(rows)}".rstrip() + (f"\n  and {more} more" if more > 0 else "")
    yield from (f"note: {note}" for note in found.notes)


def _units(units: Any) -> str:  # noqa: ANN401 - resource -> amount
    return ", ".join(f"{amount} {resource or 'cores'}" for resource, amount in units.items())
