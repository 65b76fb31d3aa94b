"""The cluster's side of a health run, through kubectl on the first control plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from pai_install.engine.base import Engine, Event, EventKind, RunRequest
from pai_install.errors import PaiError
from pai_install.plan.model import Inventory

NODES_PLAYBOOK = "health-nodes.yml"


@dataclass(frozen=True, slots=True)
class KubectlCall:
    """One command. may_fail: its failure is an answer."""

    argv: tuple[str, ...]
    stdin: str = ""
    may_fail: bool = False


def kubectl(engine: Engine, inventory: Inventory, calls: Sequence[KubectlCall]) -> list[str]:
    """Runs the commands in order; returns their standard outputs.

    Raises PaiError when one fails that may not, or the control plane is out of reach.
    """
    words = [{**asdict(call), "argv": list(call.argv)} for call in calls]
    request = RunRequest(NODES_PLAYBOOK, inventory, extra_vars={"pai_health_kubectl": words})
    outputs: list[str] = []
    for event in engine.run(request):
        if event.kind in (EventKind.FAILED, EventKind.UNREACHABLE):
            raise PaiError(f"kubectl failed on {event.host}", details=_why(event))
        if event.host and isinstance(results := event.result.get("results"), list):
            outputs = [str(result.get("stdout", "")) for result in results]
    if len(outputs) != len(calls):
        raise PaiError("the control plane gave no answer", remedy="pai-install verify")
    return outputs


def _why(event: Event) -> str:
    rows = event.result.get("results")
    texts = [row.get("stderr") or row.get("msg") for row in rows if row.get("failed")] if isinstance(rows, list) else []
    return str(next(iter(texts), None) or event.result.get("msg") or event.kind.value)[:400]
