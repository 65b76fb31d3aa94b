"""Whether an NVLink fails again and again: then it is no longer a reset that helps."""

from __future__ import annotations

from collections.abc import Iterator

from pai_install.checks.result import Result, failed, passed
from pai_install.checks.verdict import Action
from pai_install.health.evidence import fields
from pai_install.health.judge.check import machine_check
from pai_install.health.judge.nvlink_error import LinkFault
from pai_install.health.judge.view import MachineView
from pai_install.health.judge.xid import NVLINK_ERROR, failing_links
from pai_install.health.memory.snapshot import card_of

_WHAT = {
    Action.RMA: "replace the card; the history is the evidence for the vendor",
    Action.DRAIN: "reseat the card, bridge, or board and check its contacts. Run the vendor's field diagnostic",
}


@machine_check(
    id="gpu-xid-same-link",
    title="No NVLink fails repeatedly (Xid 74)",
    reads="kernel log of this boot, history",
    rule=(
        "FAIL for the same link of a card in more than xid-same-link incidents, this boot's and one of each earlier "
        "boot, the last within xid-window-hours. Its registers decide between a replacement of the card (parity, ECC) "
        "or its connection. Corrected errors and errors caused by another error do not count"
    ),
    limits=("xid-same-link", "xid-window-hours"),
    source="XC, WORKFLOW_NVLINK_ERR",
    remedy=_WHAT[Action.DRAIN],
    action=Action.DRAIN,
    gpus_only=True,
)
def same_link(machine: MachineView) -> Iterator[Result]:
    most = machine.limit("xid-same-link")
    again = 0
    for (device, link), faults in sorted(_of_this_boot(machine).items()):
        times = len(faults) + len(_earlier_boots(device, link, machine))
        fault, when = faults[-1]
        if times <= most or not machine.recent(when):
            continue
        again += 1
        message = f"NVLink {link} has failed {times} times: {fault.cause}"
        yield failed(message, times, f"<= {most:.0f}", device=device, action=fault.returns, remedy=_WHAT[fault.returns])
    if not again:
        yield passed("none", "none")


def _of_this_boot(machine: MachineView) -> dict[tuple[str, str], list[tuple[LinkFault, float | None]]]:
    """(GPU, link) -> its faults with their time, one of each incident, in the order of the log."""
    found: dict[tuple[str, str], list[tuple[LinkFault, float | None]]] = {}
    for incident in machine.incidents:
        slot = incident.bus_id.partition(".")[0]
        device = next((gpu.bus_id for gpu in machine.gpus if gpu.bus_id.partition(".")[0] == slot), incident.bus_id)
        for link, fault in failing_links(incident).items():
            found.setdefault((device, link), []).append((fault, incident.last_time))
    return found


def _earlier_boots(device: str, link: str, machine: MachineView) -> set[str]:
    """The earlier boots in which this link of the card failed."""
    named = next((gpu.peek(fields.UUID).text for gpu in machine.gpus if gpu.bus_id == device), "")
    cards = {device, named, machine.known_cards.get(device, "")} - {""}
    past = (item for snapshot in machine.history for item in snapshot.incidents)
    same = (item for item in past if (item.xid, item.link) == (NVLINK_ERROR, link))
    return {item.boot_id for item in same if item.uuid in cards or card_of(item.uuid) in cards} - {machine.boot_id}
