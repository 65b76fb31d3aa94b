"""What checks see: readings that are recorded, evidence that is missing, growth since the last run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pai_install.checks.evidence import NotObservedError
from pai_install.checks.finding import parse_finding
from pai_install.checks.result import Result, failed, passed, warned
from pai_install.checks.verdict import Action, Verdict, gravest
from pai_install.health.collect.collector import redact
from pai_install.health.evidence import fields
from pai_install.health.evidence.document import CommandResult
from pai_install.health.evidence.parse.nvidia import Gpu
from pai_install.health.evidence.reading import State
from pai_install.health.judge.evaluate import judge_machine, machine_view
from pai_install.health.judge.facts import baseline_of, facts_of, snapshot_of
from pai_install.health.judge.gpu_view import GpuView
from pai_install.health.judge.view import MachineView
from pai_install.health.memory.snapshot import GpuBaseline, Snapshot, card_of
from pai_install.report.findings import FindingEntry
from tests.unit.health.machines import BOOT, DRIVER, NOW, Box, bus_id, change, gpu_change, h100, healthy, uuid


def gpu(**texts: str) -> GpuView:
    found = {"product_name": "NVIDIA H100", **{path.replace("__", "/"): text for path, text in texts.items()}}
    return GpuView(Gpu("b", found), 580, None)


def view(box: Box) -> MachineView:
    return machine_view(box.evidence, replace(box.knowledge, expected={box.evidence.machine: box.expected}))


# A GPU


def test_a_pass_that_rests_on_a_value_stays() -> None:
    item = gpu(compute_mode="Default")
    assert item.word(fields.COMPUTE_MODE, "default") == "default"
    assert item.record.settle(passed("x")).verdict is Verdict.PASS
    assert item.record.evidence == "compute mode"


@pytest.mark.parametrize(
    ("text", "verdict", "words"),
    [
        ("N/A", Verdict.SKIP, "is N/A on this GPU"),
        ("ERR!", Verdict.UNKNOWN, "reads 'ERR!'"),
        ("Odd", Verdict.UNKNOWN, "reads 'Odd'"),
        ("", Verdict.UNKNOWN, "missing from the driver's answer"),
    ],
)
def test_a_pass_that_rests_on_no_value_does_not(text: str, verdict: Verdict, words: str) -> None:
    item = gpu(compute_mode=text)
    item.word(fields.COMPUTE_MODE, "default")
    result = item.record.settle(passed("x"))
    assert result.verdict is verdict
    assert words in result.message


def test_a_fail_stays_whatever_else_is_missing() -> None:
    item = gpu(compute_mode="ERR!")
    item.word(fields.COMPUTE_MODE, "default")
    assert item.record.settle(failed("bad")).verdict is Verdict.FAIL
    assert item.record.settle(warned("so so")).verdict is Verdict.WARN


def test_an_error_weighs_more_than_an_absence_and_that_more_than_not_available() -> None:
    item = gpu(compute_mode="N/A", performance_state="")
    item.text(fields.COMPUTE_MODE)
    item.text(fields.PSTATE)
    missing = item.record.settle(passed())
    assert missing.verdict is Verdict.UNKNOWN
    item = gpu(compute_mode="N/A", performance_state="Unknown Error")
    item.text(fields.COMPUTE_MODE)
    item.text(fields.PSTATE)
    missing = item.record.settle(passed())
    assert missing.value == "Unknown Error"


def test_what_is_only_peeked_at_does_not_count() -> None:
    item = gpu(compute_mode="N/A")
    assert item.peek(fields.COMPUTE_MODE).state is State.NOT_AVAILABLE
    assert item.record.settle(passed()).verdict is Verdict.PASS
    item.text(fields.COMPUTE_MODE)
    assert item.record.settle(passed()).verdict is Verdict.SKIP
    item.record.begin()
    assert item.record.settle(passed()).verdict is Verdict.PASS


def test_text_that_is_no_number_is_an_error_for_who_wants_one() -> None:
    item = gpu(temperature__gpu_temp="warm")
    assert item.number(fields.TEMPERATURE) is None
    missing = item.record.settle(passed())
    assert missing.verdict is Verdict.UNKNOWN


def test_paths_of_an_older_schema_are_found() -> None:
    assert gpu(power_readings__power_draw="40.00 W").number(fields.POWER) == 40
    assert gpu(gpu_power_readings__power_draw="41.00 W").number(fields.POWER) == 41
    assert gpu(gpu_power_readings__instant_power_draw="42.00 W").number(fields.POWER) == 42


def test_errors_are_found_anywhere_but_in_what_is_not_the_gpu_s_own() -> None:
    item = gpu(a__b="ERR!", power_smoothing="Insufficient Permissions", processes="ERR!", c="Unknown Error")
    assert item.errors == {"a/b": "ERR!", "c": "Unknown Error"}


# A machine


@pytest.mark.parametrize(
    ("result", "verdict", "words"),
    [
        (None, Verdict.SKIP, "was not collected"),
        (CommandResult(missing=True), Verdict.SKIP, "not installed"),
        (CommandResult(timed_out=True), Verdict.UNKNOWN, "no answer in time"),
        (CommandResult(not_started=True), Verdict.UNKNOWN, "no answer in time"),
        (CommandResult(rc=3, stderr="denied"), Verdict.UNKNOWN, "status 3: denied"),
    ],
)
def test_output_that_is_not_there_says_why(result: CommandResult | None, verdict: Verdict, words: str) -> None:
    machine = view(healthy().command("lspci", result))
    with pytest.raises(NotObservedError, match=words) as gap:
        machine.output("lspci", missing=Verdict.SKIP)
    assert gap.value.verdict is verdict
    assert machine.record.evidence == "lspci"


def test_allowed_statuses_are_answers() -> None:
    machine = view(healthy().command("lspci", CommandResult(rc=1, stdout="x")))
    assert machine.output("lspci", allowed=(0, 1)) == "x"


def test_files_of_a_reader_that_failed_are_not_an_empty_list() -> None:
    machine = view(healthy().fact("files_pci", None))
    with pytest.raises(NotObservedError):
        machine.files("/sys/bus/pci/devices/", "files_pci")
    assert view(healthy()).files("/nowhere/", "files_pci") == {}


def test_growth_needs_an_earlier_value_of_the_same_boot() -> None:
    def delta(snapshot: Snapshot | None, value: float = 10) -> tuple[float, float] | None:
        history = {"gpu-01": [snapshot] if snapshot else []}
        return view(healthy().knowing(history=history)).delta("g", "c", value)

    before = Snapshot(NOW - 50, BOOT, counters={"g": {"c": 4}})
    assert delta(before) == (6, 50)
    assert delta(None) is None
    assert delta(replace(before, boot_id="other")) is None
    assert delta(replace(before, counters={})) is None
    assert delta(before, 3) is None, "the counter was reset"
    assert delta(replace(before, time=NOW + 5)) is None, "saved evidence older than the history"


def test_csv_fills_what_the_xml_lacks_and_never_replaces_it() -> None:
    csv = "pci.bus_id, gpu_recovery_action, compute_mode\n00000000:18:00.0, Reset, Prohibited\n"
    box = healthy().gpus(change(h100(0), "gpu_recovery_action", None), h100(1)).output("nvidia_smi_csv", csv)
    assert box.verdict("gpu-recovery-action") is Verdict.FAIL
    assert box.verdict("gpu-compute-mode") is Verdict.PASS


def test_machine_with_gpus_is_known_by_any_sign_of_one() -> None:
    bare = healthy().expecting(device="", count=None, model="")
    assert view(bare).has_nvidia
    no_answer = bare.command("nvidia_smi_xml", None)
    assert view(no_answer).has_nvidia
    nothing = {path: None for path in bare.evidence.files if "nvidia" in path}
    off = no_answer.paths(nothing).command("lspci", None)
    assert view(off).has_nvidia  # sysfs shows the cards
    off = off.paths({path: None for path in bare.evidence.files if path.startswith("/sys/bus/pci/")})
    assert not view(off).has_nvidia
    for result in (CommandResult(timed_out=True), CommandResult(rc=15)):
        assert view(off.command("nvidia_smi_xml", result)).has_nvidia
    none = CommandResult(rc=6, stdout="No devices were found")
    assert not view(off.command("nvidia_smi_xml", none)).has_nvidia
    assert view(off.expecting(device="nvidia.com/gpu")).has_nvidia


# What is kept


def test_facts_of_a_machine() -> None:
    facts = facts_of(view(healthy()))
    assert facts.gpus == 2
    assert facts.clock_offset == pytest.approx(0.00002)
    assert facts.traits == {
        "driver": DRIVER,
        "vbios": "96.00.00.00.01",
        "inforom": "G520.0000.00.01",
        "gsp": DRIVER,
        "rdma-ports": "2",
        "gpu-memory": "81500 MiB",
        "kernel": "6.1.0-40-amd64",
        "os": "Debian GNU/Linux 12 (bookworm)",
        "containerd": "2.3.1",
        "toolkit": "1.20.0",
        "rdma-firmware": "28.41.1000",
    }


def test_facts_of_a_silent_machine_are_empty_and_not_zero() -> None:
    box = healthy()
    silent = replace(box, evidence=replace(box.evidence, commands={}, files={}, facts={}))
    facts = facts_of(view(silent))
    assert facts.gpus is None
    assert facts.traits == {}
    assert facts.clock_offset is None


def test_snapshot_of_a_machine() -> None:
    box = gpu_change("persistence_mode", "Disabled")(healthy()).output(
        "nvidia_smi_nvlink_errors", f"GPU 0: H100 (UUID: {uuid(0)})\n\t Link 0: Replay Errors: 3\n"
    )
    machine = view(box)
    snapshot = snapshot_of(machine, list(judge_machine(machine)))
    assert snapshot.gpus == {bus_id(0): card_of(uuid(0)), bus_id(1): card_of(uuid(1))}
    assert snapshot.counters[f"gpu {card_of(uuid(0))}"]["replays"] == 40
    assert snapshot.counters["port mlx5_0/1"]["link_downed"] == 1
    assert snapshot.counters["net eth0"] == {"carrier_changes": 2}
    assert snapshot.counters["edac"] == {"corrected": 0}
    assert snapshot.counters["nvlink 0"] == {"link 0: Replay Errors": 3}
    assert snapshot.counters[f"pci {bus_id(0)}"] == {"aer corrected": 0, "aer nonfatal": 0}
    assert snapshot.warned == ("gpu-persistence",)
    assert snapshot.failed == ()


def test_baseline_of_a_machine_judges_no_generation_at_rest() -> None:
    box = healthy().gpus(change(h100(0), "performance_state", "P8"), h100(1))
    baseline = baseline_of(view(box))
    assert baseline.gpus[bus_id(0)] == GpuBaseline(card_of(uuid(0)), 16, None, 81500, 18)
    assert baseline.gpus[bus_id(1)].pcie_gen == 5


# Verdicts


def test_gravest() -> None:
    order = [Verdict.SKIP, Verdict.PASS, Verdict.WARN, Verdict.UNKNOWN, Verdict.FAIL]
    for number in range(len(order)):
        assert gravest(order[: number + 1]) is order[number]
    assert gravest([]) is Verdict.SKIP


def test_actions_are_ordered_by_what_they_cost() -> None:
    assert [action.rank for action in (Action.NONE, Action.RESET_GPU, Action.REBOOT, Action.RMA)] == sorted(
        action.rank for action in (Action.NONE, Action.RESET_GPU, Action.REBOOT, Action.RMA)
    )


def test_finding_survives_json() -> None:
    finding = gpu_change("remapped_rows/remapped_row_failure", "Yes")(healthy()).finding("gpu-remap-failed")
    assert parse_finding(FindingEntry.model_validate(finding).as_json()) == finding
    assert "device" not in FindingEntry.model_validate(healthy().finding("host-swap")).as_json()


def test_result_helpers() -> None:
    assert failed("m", 5, 0) == Result(Verdict.FAIL, "m", "5", "0")
    assert warned("m").action is Action.NONE
    assert failed("m").action is None, "the check's own"


# The kernel's log

XID = "2026-09-21T14:00:00+0000 n kernel: NVRM: Xid (PCI:0000:18:00): 79, pid=1, gone"
REFUSED = CommandResult(rc=1, stderr="dmesg: read kernel buffer failed: Operation not permitted")


def logs(journal: CommandResult | None, ring: CommandResult | None) -> Box:
    return healthy(1).command("kernel_log", journal).command("dmesg", ring)


@pytest.mark.parametrize(
    ("journal", "ring", "verdict"),
    [
        (CommandResult(rc=0, lines=900), REFUSED, Verdict.PASS),
        (CommandResult(rc=0, lines=0), REFUSED, Verdict.UNKNOWN),
        (CommandResult(rc=0), REFUSED, Verdict.UNKNOWN),
        (CommandResult(rc=0), CommandResult(rc=0, lines=900), Verdict.PASS),
        (CommandResult(rc=0, lines=1), CommandResult(rc=0, lines=1, stdout=XID), Verdict.FAIL),
        (CommandResult(rc=0, lines=900, truncated=True), REFUSED, Verdict.UNKNOWN),
        (CommandResult(rc=0, truncated=True), CommandResult(rc=0), Verdict.UNKNOWN),
        (CommandResult(rc=0, lines=900, truncated=True, stdout=XID), REFUSED, Verdict.FAIL),
    ],
)
def test_a_log_that_is_empty_or_cut_never_passes(journal: CommandResult, ring: CommandResult, verdict: Verdict) -> None:
    box = logs(journal, ring)
    assert box.verdict("gpu-xid") is verdict
    if verdict is Verdict.UNKNOWN:
        for check in ("kernel-oom", "kernel-machine-checks", "nvswitch-sxid"):
            assert box.verdict(check) is Verdict.UNKNOWN


# Cards between runs


def after(*boxes: Box) -> Box:
    """The last machine, with the runs of those before it in its history."""
    *earlier, last = boxes
    runs: list[Snapshot] = []
    for number, box in enumerate(earlier):
        dated = replace(box, evidence=replace(box.evidence, collected_at=NOW - 3600 + number))
        snapshot = dated.knowing(history={"gpu-01": list(runs)}).report().snapshot
        assert snapshot
        runs.append(snapshot)
    return last.knowing(history={"gpu-01": runs})


def redacted(box: Box) -> Box:
    """As --redact collects it."""
    xml = box.evidence.commands["nvidia_smi_xml"].stdout
    return box.output("nvidia_smi_xml", str(redact(xml)))


def test_a_card_that_was_lost_and_is_back_was_not_replaced() -> None:
    well, lost = healthy(), healthy().gpus(h100(0), change(h100(1), "uuid", "GPU is lost"))
    missing = healthy().gpus(h100(0))
    assert after(well, lost).verdict("gpu-replaced") is Verdict.UNKNOWN
    for boxes in ((well, lost, well), (lost, well), (well, missing), (well, missing, well), (missing, well)):
        assert after(*boxes).verdict("gpu-replaced") is Verdict.PASS
    other = healthy().gpus(h100(0), change(h100(1), "uuid", uuid(7)))
    assert after(well, lost, other).finding("gpu-replaced").value == bus_id(1)
    swapped = healthy().gpus(change(h100(0), "uuid", uuid(1)), change(h100(1), "uuid", uuid(0)))
    assert after(well, swapped).verdict("gpu-replaced") is Verdict.WARN


def test_redaction_between_two_runs_replaces_no_card_and_resets_no_counter() -> None:
    well = healthy()
    grown = well.gpus(change(h100(0), "pci/replay_counter", "4000"), h100(1))
    for boxes in ((well, redacted(grown)), (redacted(well), grown)):
        assert after(*boxes).verdict("gpu-replaced") is Verdict.PASS
        assert after(*boxes).verdict("gpu-pcie-replays") is Verdict.WARN


def test_a_lost_card_s_incident_is_remembered_under_its_name() -> None:
    lost = healthy().gpus(change(h100(0), "uuid", "GPU is lost"), h100(1)).log(XID)
    snapshot = after(healthy(), lost).report().snapshot
    assert snapshot
    assert [item.uuid for item in snapshot.incidents] == [card_of(uuid(0))]


def test_a_run_with_a_wrong_clock_is_not_the_previous_one() -> None:
    runs = [Snapshot(NOW - 60, BOOT), Snapshot(100.0, BOOT)]
    previous = view(healthy().knowing(history={"gpu-01": runs})).previous
    assert previous is not None
    assert previous.time == NOW - 60
