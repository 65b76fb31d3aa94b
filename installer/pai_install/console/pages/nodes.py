"""Nodes: a square for each GPU, and one node with its jobs."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import get_args
from urllib.parse import urlencode

from starlette.responses import Response
from starlette.routing import Route

from pai_install.app.job_quota import utilization_in
from pai_install.app.node_health import GpuGroup, GpuState, NodeGpus
from pai_install.console.endpoint import ApiCall
from pai_install.console.errors import RestError
from pai_install.console.monitoring import fill_of_node, load_of_node, transfer_of_node
from pai_install.console.openpai.job import full_name
from pai_install.console.pages.charts import Chart, chart
from pai_install.console.pages.endpoint import page, shown
from pai_install.console.pages.waiting import HolderRow, job_address
from pai_install.console.services import ConsoleServices
from pai_install.kube.model import Node, Ref

# nodes of a page: with eight jobs each they stay below the largest page
PAGE = 100
# of a node: GPUs that are shared may have more
_MOST_JOBS, _MOST_SQUARES = 12, 64
STATES: tuple[GpuState, ...] = get_args(GpuState)
_CHART_HOURS = 6


@dataclass(frozen=True, slots=True)
class Squares:
    """Equal GPUs of a node. kind: a GpuState, or hidden: of another group. name, address: of a job."""

    kind: str
    count: int
    name: str = ""
    address: str = ""


def all_nodes(call: ApiCall) -> list[NodeGpus]:
    """Nodes for jobs, and for administrators all nodes."""
    return [node for node in call.services.model.gpus() if node.sku or call.caller.admin]


def squares_of(node: NodeGpus, visible: frozenset[str] | None) -> list[Squares]:
    """The GPUs of a node for a person who may see jobs in these namespaces. Instances of one job are together."""
    counts: Counter[Squares] = Counter()
    for group in node.groups:
        counts[_squares(group, visible)] += group.count
    named = [one for one in counts if one.address]
    for one in named[_MOST_JOBS:]:
        counts[Squares("used", 0)] += counts.pop(one)
    kinds = ("used", "hidden", *STATES[1:])
    found = sorted(counts, key=lambda one: (kinds.index(one.kind), not one.address, one.name))
    return [replace(one, count=min(counts[one], _MOST_SQUARES)) for one in found]


def _squares(group: GpuGroup, visible: frozenset[str] | None) -> Squares:
    job = group.job
    if job is None:
        return Squares(group.use, 0)
    if visible is not None and job.namespace not in visible:
        return Squares("hidden", 0)
    return Squares("used", 0, full_name(job), job_address(job))


def list_nodes(call: ApiCall) -> Response:
    """Nodes with their GPUs. All filters are in the address."""
    model = call.services.model
    visible, nodes = model.visible(call.caller), all_nodes(call)
    selected = list(_selected(call, nodes))
    word = call.query.get("offset", "")
    offset = int(word) if word.isdecimal() and len(word) < 7 else 0
    rows = [(node, squares_of(node, visible)) for node in selected[offset : offset + PAGE]]
    return shown(
        call,
        "nodes.html",
        rows=rows,
        total=len(selected),
        first=offset + 1 if rows else 0,
        last=offset + len(rows),
        before=_address(call, max(0, offset - PAGE)) if offset else "",
        after=_address(call, offset + PAGE) if offset + PAGE < len(selected) else "",
        sums=_sums(nodes),
        skus=sorted({node.sku for node in nodes if node.sku}),
        states=STATES,
        query=dict(call.query),
        age=int(model.age),
    )


def _sums(nodes: Iterable[NodeGpus]) -> Counter[str]:
    """GPUs by their use."""
    found: Counter[str] = Counter()
    for node in nodes:
        for group in node.groups:
            found[group.use] += group.count
    return found


def _selected(call: ApiCall, nodes: Iterable[NodeGpus]) -> Iterator[NodeGpus]:
    sku, state, word = (call.query.get(name, "") for name in ("sku", "state", "keyword"))
    for node in nodes:
        in_state = not state or any(group.use == state for group in node.groups)
        in_state = in_state or (state == "cordoned" and node.cordoned) or (state == "sick" and not node.ready)
        if in_state and sku in ("", node.sku) and word in node.name:
            yield node


def _address(call: ApiCall, offset: int) -> str:
    others = {name: value for name, value in call.query.items() if name != "offset"}
    return f"/nodes?{urlencode({**others, 'offset': offset})}"


def show_node(call: ApiCall) -> Response:
    """One node with its jobs. Administrators see its findings, and its conditions, which are read as the caller."""
    model, name = call.services.model, call.path["node"]
    node = next((one for one in all_nodes(call) if one.name == name), None)
    if node is None:
        raise RestError(HTTPStatus.NOT_FOUND, "NoNodeError", f"node {name[:253]} is not found")
    visible = model.visible(call.caller)
    (found,) = call.client.get([Ref("node", name)]) if call.caller.admin else (None,)
    return shown(
        call,
        "node.html",
        node=node,
        squares=squares_of(node, visible),
        jobs=[_row(call, group) for group in node.groups if group.job is not None and _is_seen(group, visible)],
        findings=[one for one in model.findings() if one.subject == name] if found is not None else [],
        kubernetes=Node.parse(found) if found is not None else None,
        charts=_charts(call, name) if found is not None else [],
        chart_hours=_CHART_HOURS,
        age=int(model.age),
    )


def _charts(call: ApiCall, node: str) -> list[tuple[str, Chart, bool]]:
    """Text, chart, and whether its axis ends at 100. The first one says for all that there is no monitoring."""
    found = [
        (key, chart(call, queries, _CHART_HOURS, percent=percent), percent)
        for key, queries, percent in (
            ("charts.node", load_of_node(node), True),
            ("charts.fill", fill_of_node(node), True),
            ("charts.transfer", transfer_of_node(node), False),
        )
    ]
    return found if found[0][1].state == "on" else found[:1]


def _is_seen(group: GpuGroup, visible: frozenset[str] | None) -> bool:
    return group.job is not None and (visible is None or group.job.namespace in visible)


def _row(call: ApiCall, group: GpuGroup) -> HolderRow:
    job = group.job
    assert job is not None  # noqa: S101 - the caller selects groups of jobs
    since = group.instance.started if group.instance is not None else ""
    use = utilization_in(call.services.model.profile, job, time.time())
    name, address = job.name, job_address(job)
    return HolderRow(name, address, job.user, job.cluster, group.count, since, waits=False, gpus=True, use=use)


def routes(services: ConsoleServices) -> tuple[Route, ...]:
    """All routes."""
    del services
    return (
        Route("/nodes", page(list_nodes), methods=["GET"]),
        Route("/nodes/{node}", page(show_node), methods=["GET"]),
    )
