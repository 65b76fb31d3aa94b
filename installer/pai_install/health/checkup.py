"""One health run from start to end: evidence from machines or a file, verdicts, memory for the next run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from pai_install.checks.limits import Limits
from pai_install.cluster.client import ClusterClient
from pai_install.documents.validate import did_you_mean
from pai_install.engine.base import Engine
from pai_install.errors import ExitCode, PaiError
from pai_install.health.act.bandwidth import measure, not_run, plan_run
from pai_install.health.act.pod import try_pods
from pai_install.health.collect.collector import redact
from pai_install.health.collect.run import CollectorOptions, collect, health_inventory
from pai_install.health.evidence import file as evidence_file
from pai_install.health.evidence.document import parse_evidence
from pai_install.health.evidence.parse.nccl import COMMAND as BANDWIDTH
from pai_install.health.evidence.raw import write_raw
from pai_install.health.judge.catalogues import load_catalogue, load_limits
from pai_install.health.judge.evaluate import Knowledge, MachineReport, evaluate, machine_view
from pai_install.health.judge.expectation import expectations
from pai_install.health.judge.facts import baseline_of
from pai_install.health.memory.acknowledgement import Acknowledgement, Key, apply, cause_of, causes
from pai_install.health.memory.snapshot import Baseline
from pai_install.health.memory.store import HealthStore, silent
from pai_install.health.report import UNREACHED, HealthReport, unreached
from pai_install.report.machines import machines_of
from pai_install.site.model import Site
from pai_install.site.selection import require_present
from pai_install.system.files import private_folder
from pai_install.system.parameters import Parameter
from pai_install.system.words import shortened

THRESHOLDS_FILE = "health.yml"
OpenEngine = Callable[[], AbstractContextManager[Engine]]
OpenCluster = Callable[[], ClusterClient]


class HealthRequest(BaseModel):
    """A request for a health run."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    limit: Annotated[tuple[str, ...], Parameter(metavar="HOST,...", split=True)] = Field(
        (), description="Check only these machines of the site."
    )
    source: Annotated[Path | None, Parameter("--from", "FILE")] = Field(
        None, description="Judge saved evidence instead of the machines."
    )
    save: Annotated[Path | None, Parameter(metavar="FILE")] = Field(
        None, description="Save the evidence to this file (.gz: compressed)."
    )
    raw: Annotated[Path | None, Parameter(metavar="DIR")] = Field(
        None, description="Write the evidence as text into this folder. HTML links to it."
    )
    redact: bool = Field(default=False, description="Replace serial numbers and UUIDs on the machine.")
    deep_image: Annotated[str, Parameter(metavar="IMAGE")] = Field(
        "", description="Also run this image in Docker, in containerd, and as a pod."
    )
    bandwidth_image: Annotated[str, Parameter(metavar="IMAGE")] = Field(
        "", description="Also run all_reduce_perf of this image in jobs."
    )


@dataclass(frozen=True, slots=True)
class AcknowledgementText:
    """The text of an acknowledgement. device: one of the check's, '' for all. until: seconds since the epoch."""

    who: str
    why: str
    until: float
    device: str = ""


@dataclass(frozen=True, slots=True)
class Accepted:
    """Accepted baselines. missed: machine -> why it has no hardware to accept."""

    baselines: Mapping[str, Baseline]
    missed: Mapping[str, str]


class HealthRun:
    """Runs the health checks of a site. Without a site, it only checks saved evidence and keeps no history."""

    def __init__(
        self,
        site: Site | None = None,
        folder: Path | None = None,
        engine: OpenEngine | None = None,
        cluster: OpenCluster | None = None,
        clock: Callable[[], float] = time.time,
        notify: Callable[[str], None] = silent,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._site = site
        self._store = HealthStore(folder, notify) if folder else None
        self._engine = engine

    def run(self, request: HealthRequest) -> HealthReport:
        """Collects or reads evidence, judges it and remembers the result (not for evidence from a file).

        Raises PaiError for an unknown machine, an unreadable file, or when no engine can run.
        """
        documents, missed = self._documents(request)
        if request.save is not None:
            # Evidence of a file comes while the file is read, and is needed twice here.
            kept = list(documents)
            evidence_file.save(request.save, kept)
            documents = kept
        if request.raw is not None:
            documents = _written(request.raw, documents)
        evidence = (parse_evidence(machine, document) for machine, document in documents)
        reports = evaluate(evidence, self._knowledge())
        if self._store and request.source is None:
            self._store.remember(
                {item.name: replace(item.snapshot, said=causes(item.findings)) for item in reports if item.snapshot}
            )
        return self._report(reports, missed)

    def _report(self, reports: Iterable[MachineReport], missed: Mapping[str, str]) -> HealthReport:
        """Returns the report with the acknowledgements applied."""
        kept = self._store.acknowledgements() if self._store else []
        # A silent machine has no report, so the acknowledgements of its silence are picked here.
        used: dict[Key, Acknowledgement] = {item.key: item for item in kept if item.check == UNREACHED}
        used = {key: item for key, item in used.items() if item.until > self._clock() and item.machine in missed}
        shown = []
        for report in reports:
            findings, found = apply(report.findings, kept, self._clock())
            used |= found
            shown.append(replace(report, findings=findings))
        if self._site is None:
            return HealthReport(tuple(shown), missed, acknowledged=used)
        return HealthReport(tuple(shown), missed, self._site.directory.name, machines_of(self._site), used)

    def acknowledge(self, machine: str, check: str, word: AcknowledgementText) -> list[Acknowledgement]:
        """Acknowledges findings of the last run, one for each device. Returns all acknowledgements in force.

        Raises PaiError if the site lacks the machine, or the last run has no such finding.
        """
        store, now = self._remembering(), self._clock()
        if self._site is not None and machine not in {item.hostname for item in self._site.present_machines}:
            names = (item.hostname for item in self._site.present_machines)
            raise PaiError(
                f"cannot find machine {machine} in this site",
                code="health-unknown-machine",
                remedy=did_you_mean(machine, names),
                exit_code=ExitCode.USAGE,
            )
        new = [
            Acknowledgement(machine, check, device, causes_before, word.who, word.why, now, word.until)
            for device, causes_before in self._earlier_causes(machine, check).items()
            if word.device in ("", device)
        ]
        if not new:
            where = f"{machine} {word.device}".strip()
            raise PaiError(
                f"cannot acknowledge {check} on {where}: it is not FAIL, WARN, or UNKNOWN",
                code="finding-not-acknowledgeable",
                remedy="run pai-install health, and copy machine, device, and check of a finding",
                exit_code=ExitCode.USAGE,
            )
        keys = {item.key for item in new}
        store.keep_acknowledgements([*(item for item in self.acknowledged() if item.key not in keys), *new])
        return self.acknowledged()

    def take_back(self, machine: str, check: str, device: str = "") -> list[Acknowledgement]:
        """Deletes an acknowledgement and returns the others. Raises PaiError if there is none."""
        kept = self.acknowledged()
        left = [item for item in kept if item.key[:2] != (machine, check) or device not in ("", item.device)]
        if len(left) == len(kept):
            raise PaiError(
                f"cannot revoke the acknowledgement of {check} on {machine}: there is none",
                code="finding-not-acknowledged",
                remedy="list acknowledgements with pai-install health acknowledge",
                exit_code=ExitCode.USAGE,
            )
        self._remembering().keep_acknowledgements(left)
        return left

    def acknowledged(self) -> list[Acknowledgement]:
        """Returns the acknowledgements in force."""
        return [item for item in self._remembering().acknowledgements() if item.until > self._clock()]

    def _earlier_causes(self, machine: str, check: str) -> dict[str, str]:
        """Returns device -> cause, for this check in the last run."""
        if check == UNREACHED:
            return {"": cause_of(unreached(machine, ""))}
        runs = self._remembering().history(machine)
        causes_before = runs[-1].said if runs else {}
        return {
            name.partition(" ")[2]: cause for name, cause in causes_before.items() if name.partition(" ")[0] == check
        }

    def _remembering(self) -> HealthStore:
        if self._store is None:
            raise PaiError(
                "cannot acknowledge a finding without a site",
                code="acknowledgement-needs-site",
                remedy="add --site DIR",
                exit_code=ExitCode.USAGE,
            )
        return self._store

    def baselines(self) -> dict[str, Baseline]:
        """Returns the accepted baselines."""
        return self._store.baselines() if self._store else {}

    def accept(self, request: HealthRequest) -> Accepted:
        """Accepts the machines' current hardware as their baseline. Machines without hardware evidence keep their
        baseline.
        """
        if self._store is None:
            raise PaiError(
                "cannot store a baseline without a site",
                code="baseline-needs-site",
                remedy="add --site DIR",
                exit_code=ExitCode.USAGE,
            )
        documents, missed = self._documents(request)
        knowledge = self._knowledge()
        found = {
            machine: baseline_of(machine_view(parse_evidence(machine, document), knowledge))
            for machine, document in documents
        }
        shown = {machine: item for machine, item in found.items() if item.gpus}
        blind = [name for name in found if name not in shown and _expects_gpus(knowledge, name)]
        self._store.accept(shown)
        return Accepted(shown, {**missed, **dict.fromkeys(blind, "nvidia-smi named no GPU")})

    def _opened(self) -> ClusterClient:
        if self._cluster is None:
            raise PaiError(
                "cannot act without a site",
                code="health-needs-cluster",
                remedy="add --site DIR",
                exit_code=ExitCode.USAGE,
            )
        return self._cluster()

    def _documents(self, request: HealthRequest) -> tuple[Iterable[tuple[str, dict[str, Any]]], Mapping[str, str]]:
        if request.source is not None:
            return _limited(request.source, request.limit), {}
        if self._site is None or self._engine is None:
            raise PaiError(
                "cannot check health without a site or evidence",
                code="health-needs-site",
                remedy="add --site DIR or --from FILE",
                exit_code=ExitCode.USAGE,
            )
        require_present(self._site, request.limit)
        hosts = request.limit or tuple(machine.hostname for machine in self._site.present_machines)
        options = CollectorOptions(request.redact, request.deep_image)
        inventory = health_inventory(self._site)
        with self._engine() as engine:
            collection = collect(engine, inventory, hosts, options)
        if request.deep_image:
            self._add_pods(collection.documents, request)
        if request.bandwidth_image:
            self._add_bandwidth(collection.documents, request.bandwidth_image)
        return list(collection.documents.items()), collection.missed

    def _add_pods(self, documents: Mapping[str, dict[str, Any]], request: HealthRequest) -> None:
        """Tries a pod on every GPU worker that answered, where the site has a cluster."""
        devices = self._gpu_workers(documents)
        if not (devices and _has_cluster(documents)):
            return
        results = try_pods(self._opened(), devices, request.deep_image)
        for machine, result in results.items():
            # the machine's own UUIDs are pseudonyms already: those that the pod saw must be the same words
            documents[machine]["commands"]["pod_gpu"] = redact(result) if request.redact else result

    def _add_bandwidth(self, documents: Mapping[str, dict[str, Any]], image: str) -> None:
        """Measures every GPU worker with responding GPUs, if the site has a cluster. Records a cause for the others."""
        runs = {}
        for machine, device in self._gpu_workers(documents).items():
            commands = documents[machine]["commands"]
            run = plan_run(device, str(commands.get("nvidia_smi_xml", {}).get("stdout", "")))
            if run is not None and _has_cluster(documents):
                runs[machine] = run
                continue
            why = (
                "nvidia-smi did not name its GPUs" if run is None else "no control-plane node of this run has a cluster"
            )
            commands[BANDWIDTH] = not_run(why)
        if runs:
            results = measure(self._opened(), runs, image)
            for machine, result in results.items():
                documents[machine]["commands"][BANDWIDTH] = result

    def _gpu_workers(self, documents: Mapping[str, dict[str, Any]]) -> dict[str, str]:
        """Returns machine -> resource name, for responding machines."""
        assert self._site is not None  # noqa: S101 - the caller has one
        expected = expectations(self._site)
        return {name: expected[name].device for name in documents if expected[name].nvidia and expected[name].worker}

    def _knowledge(self) -> Knowledge:
        limits = load_limits()
        if self._site is None:
            return Knowledge(limits, load_catalogue())
        names = [machine.hostname for machine in self._site.present_machines]
        return Knowledge(
            site_limits(limits, self._site.directory),
            load_catalogue(),
            expectations(self._site),
            self.baselines(),
            self._store.histories(names) if self._store else {},
        )


def _written(folder: Path, documents: Iterable[tuple[str, dict[str, Any]]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The documents as they pass, each written as text."""
    private_folder(folder.resolve())
    for machine, document in documents:
        write_raw(folder, machine, document)
        yield machine, document


def _has_cluster(documents: Mapping[str, dict[str, Any]]) -> bool:
    return any("kubernetes_nodes" in document["commands"] for document in documents.values())


def _expects_gpus(knowledge: Knowledge, machine: str) -> bool:
    return machine in knowledge.expected and knowledge.expected[machine].nvidia


def _limited(source: Path, limit: tuple[str, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the records of a file. Raises PaiError at the end for requested machines without a record."""
    held: list[str] = []
    for machine, document in evidence_file.load(source):
        held.append(machine)
        if not limit or machine in limit:
            yield machine, document
    unknown = [name for name in limit if name not in held]
    if unknown or not held:
        raise PaiError(
            f"cannot find evidence{f' of {shortened(unknown)}' if held else ''} in {source}",
            code="evidence-missing-for-machines",
            details=f"it contains evidence of {shortened(held, 20)}" if held else "",
            exit_code=ExitCode.USAGE,
        )


def site_limits(limits: Limits, directory: Path) -> Limits:
    """Returns the thresholds, with overrides from the site's health.yml.

    Raises PaiError if the file is no mapping or has an unknown name.
    """
    path = directory / THRESHOLDS_FILE
    if not path.is_file():
        return limits
    try:
        raw = YAML(typ="safe", pure=True).load(path.read_text()) or {}
    except YAMLError as error:
        raise PaiError(
            f"cannot read {path}: it is not YAML",
            code="health-file-invalid",
            details=str(error),
            exit_code=ExitCode.SITE_INVALID,
        ) from error
    extra = set(raw) - {"thresholds", "skus"} if isinstance(raw, dict) else {"?"}
    if extra:
        raise PaiError(
            f"cannot read {path}: unknown sections {', '.join(sorted(map(str, extra)))}",
            code="health-file-unknown-key",
            exit_code=ExitCode.SITE_INVALID,
            remedy="keep only thresholds and skus",
        )
    return limits.overridden(raw)
