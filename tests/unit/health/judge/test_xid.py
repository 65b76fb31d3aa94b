"""Xids: from a line of the log to one incident with its cause, its verdict and its return after a reboot."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.checks.verdict import Action, Verdict
from pai_install.health.evidence.parse.kernel_log import LogKind, Xid, line_time, parse_events, parse_xids
from pai_install.health.judge.xid import meaning_of, merge
from pai_install.health.memory.snapshot import PastIncident, Snapshot, card_of
from tests.unit.health.machines import BOOT, CATALOGUE, NOW, bus_id, healthy, ran, uuid

FAIL, WARN, PASS, UNKNOWN = Verdict.FAIL, Verdict.WARN, Verdict.PASS, Verdict.UNKNOWN


def at(seconds_ago: float, text: str) -> str:
    """A journal line so long before the collection."""
    stamp = datetime.fromtimestamp(NOW - seconds_ago, UTC)
    return f"{stamp:%Y-%m-%dT%H:%M:%S}+0000 gpu-01 kernel: NVRM: {text}"


def xid(number: int, *, ago: float = 60, gpu: int = 0, pid: int = 7, text: str = "details") -> str:
    return at(ago, f"Xid (PCI:{bus_id(gpu)[:-2]}): {number}, pid={pid}, name=python, {text}")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("[  12.500000] NVRM: Xid (PCI:0000:9b:00): 119, pid=20, name=smi, T", (119, "0000:9b:00.0", "20")),
        ("NVRM: Xid (0000:9b:00): 62, 0cb5(2d90) 8503d428 ffffff80", (62, "0000:9b:00.0", "")),
        ("NVRM: Xid (PCI:0000:05:00): 48, pid='<unknown>', name=<unknown>, A", (48, "0000:05:00.0", "<unknown>")),
        ("NVRM: Xid (PCI:0009:01:00): 79, GPU has fallen off the bus.", (79, "0009:01:00.0", "")),
        ("NVRM: GPU 0000:18:00.0: GPU has fallen off the bus.", (79, "0000:18:00.0", "")),
        ("NVRM: GPU at PCI:0000:18:00: GPU has fallen off the bus.", (79, "0000:18:00.0", "")),
        ("NVRM: The NVIDIA GPU 0000:18:00.0 (PCI ID: 10de:2330) has fallen off the bus and is not responding",
         (79, "0000:18:00.0", "")),
    ],
)  # fmt: skip
def test_lines_are_read(line: str, expected: tuple[int, str, str]) -> None:
    (found,) = parse_xids(line)
    assert (found.number, found.bus_id, found.pid) == expected


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: GPU at PCI:0000:9b:00: GPU-509665ad-b600-ac93-3616-d754b23d636d",
        "NVRM: GPU4 RPC history (CPU -> GSP):",
        "kernel: usb 1-1: Xid (nothing): 5,",
        "NVRM: NV_WARN_NOTHING_TO_DO",
        "",
    ],
)
def test_other_lines_are_not_xids(line: str) -> None:
    assert parse_xids(line) == ()


def test_times_of_every_form() -> None:
    expected = datetime(2026, 11, 20, 10, 0, 5, tzinfo=UTC).timestamp()
    assert line_time("2026-11-20T10:00:05+0000 h kernel: x", None) == expected
    assert line_time("2026-11-20T12:00:05+02:00 h kernel: x", None) == expected
    assert line_time("2026-11-20T10:00:05Z h kernel: x", None) == expected
    assert line_time("[Fri Nov 20 10:00:05 2026] x", None) == expected
    assert line_time("[   12.500000] x", 1000.0) == 1012.5
    assert line_time("[   12.500000] x", None) is None
    assert line_time("Nov 20 10:00:05 host kernel: x", 0.0) is None


@pytest.mark.parametrize(
    ("number", "verdict", "action"),
    [
        (13, PASS, Action.NONE),
        (31, PASS, Action.NONE),
        (43, PASS, Action.NONE),
        (45, PASS, Action.NONE),
        (46, FAIL, Action.RESET_GPU),
        (48, FAIL, Action.RESET_GPU),
        (54, FAIL, Action.DRAIN),
        (61, FAIL, Action.RESET_GPU),
        (62, FAIL, Action.RESET_GPU),
        (63, PASS, Action.NONE),
        (64, FAIL, Action.RESET_GPU),
        (74, FAIL, Action.RESET_GPU),
        (78, WARN, Action.CONFIG),
        (79, FAIL, Action.REBOOT),
        (92, WARN, Action.NONE),
        (94, WARN, Action.DRAIN),
        (95, FAIL, Action.RESET_GPU),
        (109, FAIL, Action.RESET_GPU),
        (110, FAIL, Action.RESET_GPU),
        (119, FAIL, Action.REBOOT),
        (120, FAIL, Action.REBOOT),
        (121, WARN, Action.NONE),
        (136, FAIL, Action.RESET_GPU),
        (137, WARN, Action.NONE),
        (140, FAIL, Action.RESET_GPU),
        (143, FAIL, Action.RESET_GPU),
        (151, FAIL, Action.REBOOT),
        (155, FAIL, Action.RESET_GPU),
        (158, FAIL, Action.RESET_GPU),
        (14, PASS, Action.NONE),
        (39, WARN, Action.NONE),
        (80, WARN, Action.NONE),
        (81, WARN, Action.DRAIN),
        (135, WARN, Action.NONE),
        (157, WARN, Action.NONE),
        (160, PASS, Action.NONE),
        (161, WARN, Action.NONE),
        (164, WARN, Action.NONE),
        (167, FAIL, Action.REBOOT),
        (168, FAIL, Action.RESET_GPU),
        (171, FAIL, Action.RESET_GPU),
        (172, FAIL, Action.RESET_GPU),
        (999, WARN, Action.NONE),
    ],
)
def test_the_catalogue_s_verdicts(number: int, verdict: Verdict, action: Action) -> None:
    box = healthy().log(xid(number))
    finding = next(item for item in box.findings("gpu-xid") if item.device == bus_id(0))
    assert finding.verdict is verdict
    assert finding.action is (action if verdict is not PASS else Action.NONE)
    assert str(number) in finding.message


def test_every_number_to_172_is_in_the_catalogue() -> None:
    assert set(range(1, 173)) <= set(CATALOGUE)
    for meaning in CATALOGUE.values():
        assert meaning.name
        assert meaning.verdict is not FAIL or meaning.action is not Action.NONE


def test_a_burst_is_one_incident_with_its_first_cause(snapshot: SnapshotAssertion) -> None:
    box = healthy().log(xid(48, ago=100), xid(45, ago=99), xid(43, ago=98), xid(63, ago=97))
    finding = box.finding("gpu-xid")
    assert finding.message == snapshot
    assert finding.value == snapshot


def test_a_follower_is_the_cause_only_when_it_is_alone() -> None:
    assert healthy().log(xid(45, ago=101), xid(74, ago=100)).finding("gpu-xid").message == "Xid 74: NVLink error"
    assert healthy().log(xid(45, ago=101), xid(43, ago=100)).verdict("gpu-xid") is PASS


def test_incidents_are_split_by_gpu_and_by_pause() -> None:
    xids = parse_xids("\n".join([xid(13, ago=1000), xid(13, ago=900), xid(13, ago=300), xid(13, ago=299, gpu=1)]))
    assert [(item.bus_id, len(item.members)) for item in merge(xids, 180, CATALOGUE)] == [
        (bus_id(0), 2),
        (bus_id(0), 1),
        (bus_id(1), 1),
    ]


def test_lines_without_times_are_one_incident() -> None:
    found = merge([Xid(48, "a", None, ""), Xid(63, "a", None, "")], 180, CATALOGUE)
    assert [item.numbers for item in found] == [(48, 63)]
    assert found[0].last_time is None


def test_an_old_fault_of_this_boot_warns() -> None:
    finding = healthy().log(xid(79, ago=30 * 3600)).finding("gpu-xid")
    assert finding.verdict is WARN
    assert "30 h ago" in finding.message
    assert finding.action is Action.REBOOT


def test_application_faults_of_several_processes_warn() -> None:
    one = healthy().log(xid(31, ago=5000, pid=5), xid(31, ago=100, pid=5))
    assert one.verdict("gpu-xid") is PASS
    two = healthy().log(xid(31, ago=5000, pid=5), xid(31, ago=100, pid=6))
    assert two.verdict("gpu-xid") is WARN


def test_processes_of_one_burst_are_one_job_and_later_notes_do_not_hide_others() -> None:
    burst = healthy().log(xid(45, ago=101, pid=5), xid(45, ago=100, pid=6))
    assert burst.verdict("gpu-xid") is PASS
    hidden = healthy().log(xid(13, ago=9000, pid=5), xid(13, ago=5000, pid=6), xid(63, ago=60, pid=7))
    assert hidden.verdict("gpu-xid") is WARN
    note = healthy().log(xid(63)).finding("gpu-xid")
    assert (note.verdict, "application" in note.message) == (PASS, False)


@pytest.mark.parametrize("check", ["gpu-xid", "kernel-filesystems", "nvswitch-sxid"])
def test_a_log_without_its_end_is_no_quiet_log(check: str) -> None:
    box = healthy().command("kernel_log", replace(ran(at(60, "loading")), truncated=True))
    assert box.verdict(check) is UNKNOWN


def test_two_gpus_are_two_findings() -> None:
    box = healthy().log(xid(79), xid(31, gpu=1))
    assert {item.device: item.verdict for item in box.findings("gpu-xid")} == {bus_id(0): FAIL, bus_id(1): PASS}


@pytest.mark.parametrize(
    ("text", "verdict", "action"),
    [
        ("GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)", PASS, Action.NONE),
        ("GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", FAIL, Action.RESET_GPU),
        ("GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)", FAIL, Action.REBOOT),
        ("GPU recovery action changed from 0x0 (None) to 0x3 (Drain P2P)", WARN, Action.DRAIN),
        ("GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)", FAIL, Action.RESET_GPU),
        ("in other words", WARN, Action.NONE),
    ],
)
def test_154_carries_its_own_action(text: str, verdict: Verdict, action: Action) -> None:
    meaning = meaning_of(Xid(154, "a", None, text), CATALOGUE)
    assert (meaning.verdict, meaning.action) == (verdict, action)


def test_nvlink5_says_itself_whether_it_is_fatal() -> None:
    fatal = healthy().log(xid(149, text="NETIR Fatal XC1 i0 Link 04 (0x0 0x0)"))
    assert fatal.verdict("gpu-xid") is FAIL
    mild = healthy().log(xid(149, text="NETIR Nonfatal XC0 i0 Link 04 (0x0 0x0)"))
    assert mild.verdict("gpu-xid") is WARN


# Recurrence


def past(number: int, boots: int, card: str = "") -> list[Snapshot]:
    incident = [
        PastIncident(number, card or uuid(0), f"boot {boot}", NOW - 86400 * boot) for boot in range(1, boots + 1)
    ]
    return [Snapshot(item.time, item.boot_id, incidents=(item,)) for item in incident]


def test_the_same_fault_in_three_boots_of_one_card_is_the_hardware() -> None:
    box = healthy().log(xid(119))
    assert box.verdict("gpu-xid-recurrence") is PASS
    assert box.knowing(history={"gpu-01": past(119, 1)}).verdict("gpu-xid-recurrence") is PASS
    finding = box.knowing(history={"gpu-01": past(119, 2)}).finding("gpu-xid-recurrence")
    assert (finding.verdict, finding.action, finding.value) == (FAIL, Action.RMA, "3")
    assert finding.device == bus_id(0)


def test_another_card_or_another_fault_is_no_recurrence() -> None:
    box = healthy().log(xid(119))
    assert box.knowing(history={"gpu-01": past(119, 5, uuid(1))}).verdict("gpu-xid-recurrence") is PASS
    assert box.knowing(history={"gpu-01": past(79, 5)}).verdict("gpu-xid-recurrence") is PASS
    assert healthy().log(xid(31)).knowing(history={"gpu-01": past(31, 5)}).verdict("gpu-xid-recurrence") is PASS


def test_many_incidents_in_one_boot_are_the_hardware() -> None:
    lines = [xid(119, ago=1000 * number) for number in range(1, 5)]
    assert healthy().log(*lines).verdict("gpu-xid-recurrence") is FAIL


@pytest.mark.parametrize(
    "lines",
    [
        [xid(119, ago=7200), xid(31, ago=864_000), xid(31, ago=700_000), xid(13, ago=400_000)],
        [xid(119, ago=7200), xid(31, ago=10_000), xid(31, ago=20_000), xid(13, ago=40_000)],
        [xid(119, ago=800_000), xid(31, ago=700_000), xid(13, ago=400_000), xid(31, ago=100)],
        [xid(119, ago=100_000 * day) for day in range(5)],
    ],
)
def test_faults_of_applications_and_of_other_days_do_not_make_a_card_bad(lines: list[str]) -> None:
    assert healthy().log(*lines).verdict("gpu-xid-recurrence") is PASS


def test_snapshot_remembers_incidents_with_card_and_boot() -> None:
    snapshot = healthy().log(xid(79, ago=50)).report().snapshot
    assert snapshot is not None
    assert snapshot.incidents == (PastIncident(79, card_of(uuid(0)), BOOT, NOW - 50),)


# Other lines of the log

EVENTS = [
    ("EDAC MC0: 1 UE [Hardware Error]: memory read", LogKind.MACHINE_CHECK, "kernel-machine-checks", WARN),
    ("mce: [Hardware Error]: Machine check events logged", LogKind.MACHINE_CHECK, "kernel-machine-checks", WARN),
    ("INFO: task python:77 blocked for more than 120 seconds.", LogKind.HUNG_TASK, "kernel-hung-tasks", WARN),
    ("EXT4-fs error (device sda1): ext4_find_entry", LogKind.FILESYSTEM, "kernel-filesystems", FAIL),
    ("blk_update_request: I/O error, dev sda, sector 8", LogKind.FILESYSTEM, "kernel-filesystems", FAIL),
    ("Out of memory: Killed process 5 (python)", LogKind.OUT_OF_MEMORY, "kernel-oom", WARN),
    ("nvidia-nvswitch3: SXid (PCI:0000:86:00.0): 12028, Non-fatal, Link 61", LogKind.SXID, "nvswitch-sxid", WARN),
    ("nvidia-nvswitch3: SXid (PCI:0000:86:00.0): 20034, Fatal, Link 61", LogKind.SXID, "nvswitch-sxid", FAIL),
    ("pcieport 0000:17:00.0: AER: Uncorrected (Fatal) error received", LogKind.AER_FATAL, "pcie-aer", FAIL),
]


@pytest.mark.parametrize(("text", "kind", "check", "verdict"), EVENTS)
def test_other_events(text: str, kind: LogKind, check: str, verdict: Verdict) -> None:
    line = f"{datetime.fromtimestamp(NOW - 60, UTC):%Y-%m-%dT%H:%M:%S}+0000 h kernel: {text}"
    assert [event.kind for event in parse_events(line)] == [kind]
    assert healthy().log(line).verdict(check) is verdict


def test_old_disk_errors_warn() -> None:
    line = f"{datetime.fromtimestamp(NOW - 200_000, UTC):%Y-%m-%dT%H:%M:%S}+0000 h kernel: EXT4-fs error (device sda1)"
    assert healthy().log(line).verdict("kernel-filesystems") is WARN


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("mce: CPU0: Thermal monitoring enabled (TM1)", "kernel-machine-checks"),
        ("mce: CPU supports 20 MCE banks", "kernel-machine-checks"),
        ("blk_update_request: I/O error, dev fd0, sector 0 op 0x0:(READ)", "kernel-filesystems"),
        ("I/O error, dev sr0, sector 0 op 0x0:(READ)", "kernel-filesystems"),
        ("I/O error, dev loop3, sector 0 op 0x0:(READ)", "kernel-filesystems"),
        ("oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),oom_memcg=/kubepods.slice/x,task=a,pid=1", "kernel-oom"),
        ("vboxdrv: Key was rejected by service", "driver-secure-boot"),
    ],
)
def test_lines_that_mean_nothing_here(text: str, check: str) -> None:
    line = f"{datetime.fromtimestamp(NOW - 60, UTC):%Y-%m-%dT%H:%M:%S}+0000 h kernel: {text}"
    assert healthy().output("secure_boot", "SecureBoot enabled").log(line).verdict(check) is PASS


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("Out of memory: Killed process 5 (python)", "kernel-oom"),
        ("INFO: task python:77 blocked for more than 120 seconds.", "kernel-hung-tasks"),
        ("mce: [Hardware Error]: Machine check events logged", "kernel-machine-checks"),
    ],
)
def test_what_happened_days_ago_is_no_news(text: str, check: str) -> None:
    line = f"{datetime.fromtimestamp(NOW - 200_000, UTC):%Y-%m-%dT%H:%M:%S}+0000 h kernel: {text}"
    assert healthy().log(line).verdict(check) is PASS


def test_a_gpu_that_fell_off_the_bus_in_three_lines() -> None:
    box = healthy().log(
        at(60, f"The NVIDIA GPU {bus_id(1)}"),
        at(60, "(PCI ID: 10de:2330) installed in this system has"),
        at(60, "fallen off the bus and is not responding to commands."),
    )
    finding = box.finding("gpu-xid")
    assert (finding.verdict, finding.device) == (FAIL, bus_id(1))
    assert finding.message.startswith("Xid 79")


def test_ring_buffer_stands_in_for_an_empty_or_missing_journal() -> None:
    ring = "[Mon Sep 21 00:00:00 2026] NVRM: Xid (PCI:0000:18:00): 79, GPU has fallen off the bus."
    empty = healthy().output("kernel_log", "").output("dmesg", ring)
    assert empty.finding("gpu-xid").verdict in (FAIL, WARN)
    missing = healthy().command("kernel_log", None).output("dmesg", ring)
    assert missing.finding("gpu-xid").verdict in (FAIL, WARN)
