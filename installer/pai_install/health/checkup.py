"""One health run from start to end: evidence from machines or a file, verdicts, memory for the next run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from pai_install.checks.limits import Limits
from pai_install.cluster.client import ClusterClient
from pai_install.engine.base import Engine
from pai_install.errors import ExitCode, PaiError
from pai_install.health.act.bandwidth import measure, not_run, plan_run
from pai_install.health.act.pod import try_pods
from pai_install.health.collect.collector import redact
from pai_install.health.collect.run import CollectorOptions, collect, health_inventory
from pai_install.health.evidence import file as evidence_file
from pai_install.health.evidence.document import parse_evidence
from pai_install.health.evidence.parse.nccl import COMMAND as BANDWIDTH
from pai_install.health.judge.catalogues import load_catalogue, load_limits
from pai_install.health.judge.evaluate import Knowledge, evaluate, machine_view
from pai_install.health.judge.expectation import expectations
from pai_install.health.judge.facts import baseline_of
from pai_install.health.memory.snapshot import Baseline
from pai_install.health.memory.store import HealthStore
from pai_install.health.report import HealthReport
from pai_install.report.machines import machines_of
from pai_install.site.model import Site

THRESHOLDS_FILE = "health.yml"
OpenEngine = Callable[[], AbstractContextManager[Engine]]
OpenCluster = Callable[[], AbstractContextManager[ClusterClient]]


@dataclass(frozen=True, slots=True)
class CheckupRequest:
    """What was asked for. limit: machines, empty for all. source: judge this file instead of asking machines."""

    limit: tuple[str, ...] = ()
    source: Path | None = None
    save: Path | None = None
    deep_image: str = ""
    bandwidth_image: str = ""
    redact: bool = False


@dataclass(frozen=True, slots=True)
class Accepted:
    """baselines: what is normal from now on. missed: machine -> why there is nothing to accept."""

    baselines: Mapping[str, Baseline]
    missed: Mapping[str, str]


class Checkup:
    """Runs health checks of a site; without a site only over saved evidence, without memory."""

    def __init__(
        self,
        site: Site | None = None,
        folder: Path | None = None,
        engine: OpenEngine | None = None,
        cluster: OpenCluster | None = None,
    ) -> None:
        self._cluster = cluster
        self._site = site
        self._store = HealthStore(folder) if folder else None
        self._engine = engine

    def run(self, request: CheckupRequest) -> HealthReport:
        """Collects or reads evidence, judges it and remembers the result (not for evidence from a file).

        Raises PaiError for an unknown machine, an unreadable file, or when no engine can run.
        """
        documents, missed = self._documents(request)
        if request.save is not None:
            kept = list(documents)
            evidence_file.save(request.save, kept)
            documents = kept
        evidence = (parse_evidence(machine, document) for machine, document in documents)
        reports = evaluate(evidence, self._knowledge())
        if self._store and request.source is None:
            self._store.remember({item.name: item.snapshot for item in reports if item.snapshot})
        if self._site is None:
            return HealthReport(tuple(reports), missed)
        return HealthReport(tuple(reports), missed, self._site.directory.name, machines_of(self._site))

    def baselines(self) -> dict[str, Baseline]:
        """What was accepted so far."""
        return self._store.baselines() if self._store else {}

    def accept(self, request: CheckupRequest) -> Accepted:
        """Takes the machines' present hardware as their baseline; those that do not show it keep theirs."""
        if self._store is None:
            raise PaiError("a baseline belongs to a site", remedy="give --site DIR", exit_code=ExitCode.USAGE)
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

    def _opened(self) -> AbstractContextManager[ClusterClient]:
        if self._cluster is None:
            raise PaiError("no cluster to act on", remedy="give --site DIR", exit_code=ExitCode.USAGE)
        return self._cluster()

    def _documents(self, request: CheckupRequest) -> tuple[Iterable[tuple[str, dict[str, Any]]], Mapping[str, str]]:
        if request.source is not None:
            return _limited(request.source, request.limit), {}
        if self._site is None or self._engine is None:
            raise PaiError("no site to ask", remedy="give --site DIR or --from FILE", exit_code=ExitCode.USAGE)
        known = {machine.hostname for machine in self._site.present_machines}
        unknown = [name for name in request.limit if name not in known]
        if unknown:
            raise PaiError(f"the site has no machine {', '.join(unknown)}", exit_code=ExitCode.USAGE)
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

    def _add_pods(self, documents: Mapping[str, dict[str, Any]], request: CheckupRequest) -> None:
        """Tries a pod on every GPU worker that answered, where the site has a cluster."""
        devices = self._gpu_workers(documents)
        if not (devices and _has_cluster(documents)):
            return
        with self._opened() as cluster:
            results = try_pods(cluster, devices, request.deep_image)
        for machine, result in results.items():
            # the machine's own UUIDs are pseudonyms already: those that the pod saw must be the same words
            documents[machine]["commands"]["pod_gpu"] = redact(result) if request.redact else result

    def _add_bandwidth(self, documents: Mapping[str, dict[str, Any]], image: str) -> None:
        """Measures every GPU worker whose GPUs answered, where the site has a cluster; says why of the others."""
        runs = {}
        for machine, device in self._gpu_workers(documents).items():
            commands = documents[machine]["commands"]
            run = plan_run(device, str(commands.get("nvidia_smi_xml", {}).get("stdout", "")))
            if run is not None and _has_cluster(documents):
                runs[machine] = run
                continue
            why = "nvidia-smi did not name its GPUs" if run is None else "no control plane of this run has a cluster"
            commands[BANDWIDTH] = not_run(why)
        if runs:
            with self._opened() as cluster:
                results = measure(cluster, runs, image)
            for machine, result in results.items():
                documents[machine]["commands"][BANDWIDTH] = result

    def _gpu_workers(self, documents: Mapping[str, dict[str, Any]]) -> dict[str, str]:
        """Machine -> resource name, of those that answered."""
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


def _has_cluster(documents: Mapping[str, dict[str, Any]]) -> bool:
    return any("kubernetes_nodes" in document["commands"] for document in documents.values())


def _expects_gpus(knowledge: Knowledge, machine: str) -> bool:
    return machine in knowledge.expected and knowledge.expected[machine].nvidia


def _limited(source: Path, limit: tuple[str, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The records of a file, one at a time; raises PaiError after the last one for machines that it does not hold."""
    held: list[str] = []
    for machine, document in evidence_file.load(source):
        held.append(machine)
        if not limit or machine in limit:
            yield machine, document
    unknown = [name for name in limit if name not in held]
    if unknown or not held:
        raise PaiError(
            f"{source} holds no evidence" + (f" of {', '.join(unknown)}" if held else ""),
            details=f"it holds {', '.join(held[:20])}" + (" ..." if len(held) > 20 else "") if held else "",
            exit_code=ExitCode.USAGE,
        )


def site_limits(limits: Limits, directory: Path) -> Limits:
    """The thresholds with those of the site's health.yml, where there is one.

    Raises PaiError for a file that is no mapping, or names what does not exist.
    """
    path = directory / THRESHOLDS_FILE
    if not path.is_file():
        return limits
    try:
        raw = YAML(typ="safe", pure=True).load(path.read_text()) or {}
    except YAMLError as error:
        raise PaiError(f"{path} is not YAML", details=str(error), exit_code=ExitCode.SITE_INVALID) from error
    extra = set(raw) - {"thresholds", "skus"} if isinstance(raw, dict) else {"?"}
    if extra:
        raise PaiError(
            f"{path} may hold thresholds and skus, not {', '.join(sorted(map(str, extra)))}",
            exit_code=ExitCode.SITE_INVALID,
        )
    return limits.overridden(raw)
