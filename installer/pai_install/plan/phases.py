"""The installation as one readable list; everything that runs is here."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection
from dataclasses import dataclass

from pai_install.errors import ExitCode, PaiError
from pai_install.site import Machine, Site


@dataclass(frozen=True, slots=True)
class Phase:
    """One named step with one playbook.

    roles: whose records say whether there is work. machines: where the phase applies.
    needs: phases that must have succeeded on at least one of their machines before this one may start.
    """

    name: str
    title: str
    playbook: str
    roles: tuple[str, ...]
    machines: Callable[[Site], tuple[Machine, ...]]
    needs: tuple[str, ...] = ()


def _all(site: Site) -> tuple[Machine, ...]:
    return site.present_machines


def _first_control_plane(site: Site) -> tuple[Machine, ...]:
    return site.control_planes[:1]


def _control_planes(site: Site) -> tuple[Machine, ...]:
    return site.control_planes


def _joining_workers(site: Site) -> tuple[Machine, ...]:
    return tuple(machine for machine in site.workers if not machine.control_plane)


PHASES: tuple[Phase, ...] = (
    Phase("base", "Prepare the operating system", "base.yml", ("base",), _all),
    Phase("time", "Agree on the time", "time.yml", ("time_sync",), _all),
    Phase(
        "components",
        "Bring the components to the first control plane",
        "components.yml",
        ("component_store",),
        _first_control_plane,
    ),
    Phase(
        "runtime",
        "Install the container runtimes",
        "runtime.yml",
        ("container_runtime", "kubernetes_node", "api_proxy"),
        _all,
        needs=("components",),
    ),
    Phase(
        "control-plane",
        "Run the control plane",
        "control-plane.yml",
        ("control_plane",),
        _control_planes,
        needs=("runtime",),
    ),
    Phase(
        "network",
        "Connect the pods",
        "network.yml",
        ("pod_network",),
        _first_control_plane,
        needs=("control-plane",),
    ),
    Phase("workers", "Join the workers", "workers.yml", ("worker",), _joining_workers, needs=("control-plane",)),
    Phase("labels", "Label the nodes", "labels.yml", ("node_labels",), _all, needs=("control-plane",)),
    Phase(
        "devices",
        "Offer the GPUs to Kubernetes",
        "devices.yml",
        ("device_plugin",),
        _first_control_plane,
        needs=("control-plane",),
    ),
)

# Runs after any phase that had work, and alone on `pai-install verify`.
VERIFY = Phase("verify", "Prove that the cluster works", "verify.yml", (), _all, needs=("control-plane",))

PHASE_NAMES: tuple[str, ...] = (*(phase.name for phase in PHASES), VERIFY.name)


def require_phases(names: Collection[str]) -> None:
    """Raises PaiError for a name that no phase has, with the name that was probably meant."""
    for name in names:
        if name in PHASE_NAMES:
            continue
        near = difflib.get_close_matches(name, PHASE_NAMES, n=1)
        known = f"the phases are {', '.join(PHASE_NAMES)}"
        remedy = f"perhaps {near[0]} is meant; {known}" if near else known
        raise PaiError(f"there is no phase {name!r}", remedy=remedy, exit_code=ExitCode.USAGE)
