"""Rules between the entries of layout.yaml."""

from __future__ import annotations

from pai_install.documents.document import Document, Entries
from pai_install.documents.problem import short
from pai_install.documents.validate import did_you_mean
from pai_install.site.rules.raw_machines import Draft, drafts

MAX_CONTROL_PLANES = 5


def check_layout(layout: Document) -> None:
    """Adds problems between entries: names, addresses, machine types, roles."""
    machines = drafts(layout)
    for section in ("machine-sku", "machine-list"):
        if section in layout.content and layout.content[section] in ({}, []):
            layout.add((section,), "site.empty-value", "is empty", "give it at least one entry")
    for key in ("hostname", "hostip"):
        _check_unique(layout, machines, key)
    _check_types(layout, machines)
    if machines:
        _check_control_planes(layout, machines)
        _check_workers(layout, machines)
    if layout.content.get("kubernetes") is not None:
        message = "has no effect: the addresses come from the control planes"
        layout.add(("kubernetes",), "site.no-effect", message, "remove it", severity="warning")


def _check_unique(layout: Document, machines: list[Draft], key: str) -> None:
    seen: dict[str, Draft] = {}
    for machine in machines:
        value = machine.text(key)
        if value is None:
            continue
        if value in seen:
            first = layout.mark((*seen[value].path, key)).line
            message = f"{short(value)} is already used in line {first}"
            layout.add((*machine.path, key), f"site.duplicate-{key}", message, "every machine needs its own")
        else:
            seen[value] = machine


def _check_types(layout: Document, machines: list[Draft]) -> None:
    skus = layout.content.get("machine-sku")
    if not isinstance(skus, Entries):
        return
    used = {machine.text("machine-type") for machine in machines}
    for machine in machines:
        name = machine.text("machine-type")
        if name is not None and name not in skus:
            message = f"{short(name)} is not in machine-sku"
            layout.add((*machine.path, "machine-type"), "site.unknown-sku", message, did_you_mean(name, skus))
    for name in skus:
        if machines and used <= skus.keys() and name not in used:  # a misspelt type says it already
            path = ("machine-sku", name)
            layout.add(path, "site.unused-sku", "is used by no machine", "remove it", severity="warning")


def _check_control_planes(layout: Document, machines: list[Draft]) -> None:
    masters = [machine for machine in machines if machine.flag("pai-master")]
    count = len(masters)
    if count == 0:
        remedy = 'give one machine pai-master: "true"'
        layout.add(("machine-list",), "site.no-control-plane", "no machine is a control plane", remedy)
    elif count % 2 == 0 or count > MAX_CONTROL_PLANES:
        message = f"{count} control planes: there can be 1, 3 or 5, so that votes are never even"
        layout.add((*masters[-1].path, "pai-master"), "site.control-plane-count", message, "add one or remove one")
    elif all(machine.flag("absent") for machine in masters):
        path = (*masters[0].path, "absent")
        layout.add(path, "site.no-control-plane", "every control plane is absent", "at least one must be there")


def _check_workers(layout: Document, machines: list[Draft]) -> None:
    if not any(machine.flag("pai-worker") for machine in machines):
        remedy = 'set pai-worker: "true" on a machine, such as a control plane'
        layout.add(("machine-list",), "site.no-worker", "no machine is a worker", remedy)
    for machine in machines:
        if not any(map(machine.flag, ("pai-master", "pai-worker", "pai-storage"))):
            message = "is neither pai-master nor pai-worker: it stays outside the cluster"
            layout.add(machine.path, "site.no-role", message, 'give it pai-worker: "true"', severity="warning")
