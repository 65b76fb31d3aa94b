"""Whether machines still wait for an upgrade that others of the cluster have had, and for which versions. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.plan.observed import Observed
from pai_install.plan.versions import KUBERNETES, UNDER_PODS, Versions, differences, installed, newest
from pai_install.site import Site
from pai_install.system.words import plural, shortened

CHECK = "upgrade-left"


def upgrade_findings(site: Site, observed: Mapping[str, Observed]) -> tuple[Finding, ...]:
    """Returns a finding with the pending machines of a partial upgrade, or ()."""
    seen = [it for machine in site.present_machines if (it := observed.get(machine.hostname)) and it.kubernetes.node]
    had = {it.hostname: _versions(it) for it in seen}
    target = {name: newest(found.get(name, "") for found in map(installed, seen)) for name in UNDER_PODS}
    left = {host: tuple(_changes(found, target)) for host, found in had.items()}
    lines = [f"{host}: {', '.join(changes)}" for host, changes in left.items() if changes]
    if not lines:
        return ()
    kubernetes = any(found.get(KUBERNETES, target[KUBERNETES]) != target[KUBERNETES] for found in had.values())
    command = f"pai-install upgrade --to {target[KUBERNETES]}" if kubernetes else "pai-install upgrade"
    message = (
        f"an upgrade is in progress, with {plural(len(lines), 'machine')} left ({shortened(lines, separator=', ')})."
        f" Run {command} to continue"
    )
    return (Finding(CHECK, Verdict.WARN, "cluster", message, "; ".join(lines), "the same everywhere", command),)


def _versions(seen: Observed) -> dict[str, str]:
    """Returns the versions of its programs. A control plane with an older kubelet than its static pods is pending."""
    kubelet = seen.programs.get("kubelet")
    return {**installed(seen), **({KUBERNETES: kubelet} if kubelet else {})}


def _changes(had: Versions, target: Versions) -> Iterator[str]:
    for name, (old, new) in differences(had, target).items():
        yield f"{name} {old} -> {new}"
