"""The cluster's side of a health run, through kubectl on the first control plane that answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from pai_install.engine.base import Engine, Event, EventKind, RunRequest
from pai_install.errors import PaiError
from pai_install.plan.model import Inventory

_NO_SERVER = re.compile(r"was refused|connection refused|i/o timeout|no route to host|Unable to connect to the server")
NODES_PLAYBOOK = "health-nodes.yml"


@dataclass(frozen=True, slots=True)
class KubectlCall:
    """One command. may_fail: its failure is an answer."""

    argv: tuple[str, ...]
    stdin: str = ""
    may_fail: bool = False


def kubectl(engine: Engine, inventory: Inventory, calls: Sequence[KubectlCall]) -> list[str]:
    """Runs the commands in order on the first control plane in reach; returns their standard outputs.

    Raises PaiError when one fails that may not, or no control plane is in reach.
    """
    down: list[str] = []
    for host in inventory.groups["control_plane"]:
        try:
            return _on(host, engine, inventory, calls)
        except _DownError as error:
            down.append(f"{host}: {error}")
    raise PaiError("no control plane gives an answer", details="\n".join(down), remedy="pai-install verify")


class _DownError(Exception):
    """The machine or its API server cannot be reached: another may."""


def _on(host: str, engine: Engine, inventory: Inventory, calls: Sequence[KubectlCall]) -> list[str]:
    words = [{**asdict(call), "argv": list(call.argv)} for call in calls]
    request = RunRequest(NODES_PLAYBOOK, inventory, limit=(host,), extra_vars={"pai_health_kubectl": words})
    outputs: list[str] = []
    for event in engine.run(request):
        if event.kind is EventKind.UNREACHABLE or (event.kind is EventKind.FAILED and _api_down(event)):
            raise _DownError(_why(event))
        if event.kind is EventKind.FAILED:
            raise PaiError(f"kubectl failed on {event.host}", details=_why(event))
        if event.host and isinstance(results := event.result.get("results"), list):
            outputs = [str(result.get("stdout", "")) for result in results]
    if len(outputs) != len(calls):
        raise PaiError("the control plane gave no answer", remedy="pai-install verify")
    return outputs


def _api_down(event: Event) -> bool:
    """Whether the very first command found no API server: nothing was done yet."""
    rows = event.result.get("results")
    return isinstance(rows, list) and len(rows) == 1 and bool(_NO_SERVER.search(_why(event)))


def _why(event: Event) -> str:
    rows = event.result.get("results")
    texts = [row.get("stderr") or row.get("msg") for row in rows if row.get("failed")] if isinstance(rows, list) else []
    return str(next(iter(texts), None) or event.result.get("msg") or event.kind.value)[:400]
