"""Changes that a running cluster does not support: the running values against those of the site. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.documents.document import Document
from pai_install.documents.problem import YamlPath
from pai_install.errors import ExitCode, PaiError
from pai_install.plan.inventory import digest
from pai_install.plan.observed import Observed
from pai_install.plan.versions import fits, numbers
from pai_install.site import Machine, Site
from pai_install.site.field_metadata import changes
from pai_install.site.load import CONFIG, LAYOUT
from pai_install.site.settings import Settings

CHECK = "fixed-setting"
_ROLE = "control_plane"


@dataclass(frozen=True, slots=True)
class RefusedChange:
    """A setting with a different current value that apply cannot change.

    file, path: place in the site. machine: its machine, empty for the cluster.
    """

    file: str
    path: YamlPath
    name: str
    machine: str
    runs: str
    wanted: str
    remedy: str

    @property
    def message(self) -> str:
        """Returns the difference as a sentence without a full stop."""
        who = self.machine or "the cluster"
        return f"{self.name}: {who} runs with {self.runs}, the site says {self.wanted}"

    def as_finding(self) -> Finding:
        """The same as a finding of `status`."""
        subject = self.machine or "cluster"
        return Finding(CHECK, Verdict.FAIL, subject, self.message, self.runs, self.wanted, self.remedy)


def refused_changes(
    site: Site, version: str, endpoint: str, observed: Mapping[str, Observed], renamed: Mapping[str, str]
) -> tuple[RefusedChange, ...]:
    """Returns all such changes in the order of the site's files, or () without a running control plane.

    version: desired Kubernetes version, exact or minor, empty for any.
    endpoint: NAME:PORT of its API.
    renamed: machine -> its different name in the cluster.
    A setting of the control-plane role's last run is no change: if a file differs from it, a person changed the file,
    and apply restores it.
    """
    looked_at = [observed[machine.hostname] for machine in site.control_planes if machine.hostname in observed]
    found = [
        change for seen in looked_at if seen.kubernetes.joined for change in _settings(site, version, endpoint, seen)
    ]
    cluster = {change.name: change for change in reversed(found)}.values()  # one line, not one per control plane
    return (*reversed(cluster), *_machines(site, observed, renamed))


def refusal(changes: Iterable[RefusedChange], sources: Mapping[str, Document]) -> PaiError:
    """Returns the error with each change, its place in the site's files, the current value, and the remedy."""
    lines = [line for change in changes for line in (f"{_place(change, sources)}: {change.message}", change.remedy)]
    return PaiError(
        "cannot apply the site: it changes settings that are fixed in a running cluster",
        code="fixed-settings-changed",
        details="\n".join(f"    {line}" if number % 2 else line for number, line in enumerate(lines)),
        remedy=(
            "no changes made. Restore the current values in the site's files, or follow the advice below each line"
        ),
        exit_code=ExitCode.PREFLIGHT_FAILED,
    )


def _settings(site: Site, version: str, endpoint: str, seen: Observed) -> Iterator[RefusedChange]:
    settings = site.settings
    wanted = {
        ("kubernetes_version", "version"): version,
        ("pod_cidr", "pod_cidr"): settings.pod_cidr,
        ("service_cidr", "service_cidr"): settings.service_cidr,
        ("pod_cidr_node_prefix", "node_prefix"): settings.pod_cidr_node_prefix,
        ("flannel_backend", "backend"): settings.flannel_backend,
        ("hosts_entries", "endpoint"): endpoint,
    }
    for (name, observed_as), value in wanted.items():
        runs = seen.kubernetes.settings.get(observed_as, "")
        # A minor version in config.yaml permits each of its patches.
        if name == "kubernetes_version" and fits(runs, str(value)):
            continue
        # An empty value could not be read, which is no difference.
        if runs and not _same(runs, value) and not _ran_with(seen, observed_as, value):
            yield RefusedChange(CONFIG, (name,), name, "", runs, str(value), _remedy(name, runs, str(value)))


def _same(runs: str, wanted: object) -> bool:
    """Returns whether two spellings have the same value. A network may be written with any of its addresses."""
    if "/" in runs:
        return IPv4Network(runs, strict=False) == IPv4Network(str(wanted), strict=False)
    return runs == str(wanted)


def _remedy(name: str, runs: str, wanted: str) -> str:
    if name == "kubernetes_version":
        keep = f'write {name}: "{runs}"'
        if numbers(wanted) < numbers(runs):
            return f"{keep}; Kubernetes does not support downgrades"
        return f"run pai-install upgrade, which drains node after node; to stay, {keep}"
    note = changes(Settings)[name].note
    return f"set {name} back; {note}" if name == "hosts_entries" else f"keep {name}: {runs}; {note}"


def _machines(site: Site, observed: Mapping[str, Observed], renamed: Mapping[str, str]) -> Iterator[RefusedChange]:
    for index, machine in enumerate(site.machines):
        if machine.absent or machine.hostname not in observed:
            continue
        yield from _name(index, machine, renamed.get(machine.hostname, ""))
        yield from _address(index, machine, observed[machine.hostname])


def _name(index: int, machine: Machine, runs: str) -> Iterator[RefusedChange]:
    if runs:
        remedy = (
            f"set hostname: {runs}. To rename the machine, run pai-install node remove {runs} with that name in the"
            f" layout, write the new name, and run pai-install node add {machine.hostname}"
        )
        path = ("machine-list", index, "hostname")
        yield RefusedChange(LAYOUT, path, "hostname", machine.hostname, runs, machine.hostname, remedy)


def _address(index: int, machine: Machine, seen: Observed) -> Iterator[RefusedChange]:
    runs = seen.kubernetes.settings.get("address", "")
    if (
        machine.control_plane
        and seen.kubernetes.joined
        and runs
        and runs != machine.hostip
        and not _ran_with(seen, "address", machine.hostip)
    ):
        remedy = (
            f"set hostip: {runs} and give the machine that address again, because etcd and certificates contain it. Or"
            " remove the control plane from the cluster and add it again"
        )
        path = ("machine-list", index, "hostip")
        yield RefusedChange(LAYOUT, path, "hostip", machine.hostname, runs, machine.hostip, remedy)


def _ran_with(seen: Observed, name: str, wanted: object) -> bool:
    """Whether the control plane's role last succeeded here with this value."""
    record = seen.roles.get(_ROLE)
    return record is not None and record.settings.get(f"{_ROLE}_{name}") == digest(wanted)


def _place(change: RefusedChange, sources: Mapping[str, Document]) -> str:
    source = sources.get(change.file)
    if source is None or change.path not in source.marks:
        return f"{change.file} (default)"
    line, column = source.mark(change.path)
    return f"{source.file}:{line}:{column}"
