"""The checks of a GPU: each unhealthy machine is a healthy one with one thing changed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.checks.limits import Limit, Limits
from pai_install.checks.verdict import Action, Verdict
from pai_install.health.judge.rules import CHECKS
from pai_install.health.memory.snapshot import Baseline, GpuBaseline, PastIncident, Snapshot, card_of
from tests.unit.health.machines import (
    BOOT,
    LIMITS,
    NOW,
    Box,
    Texts,
    bus_id,
    change,
    gpu_change,
    h100,
    healthy,
    ran,
    smi_xml,
    uuid,
    volta,
)

FAIL, WARN, PASS, SKIP, UNKNOWN = Verdict.FAIL, Verdict.WARN, Verdict.PASS, Verdict.SKIP, Verdict.UNKNOWN
WIDTH = "pci/pci_gpu_link_info/link_widths/current_link_width"
GEN = "pci/pci_gpu_link_info/pcie_gen/current_link_gen"
EVENT = "clocks_event_reasons/clocks_event_reason_"

# path, new text, check, verdict, action
ONE_VALUE: list[tuple[str, str, str, Verdict, Action]] = [
    ("gpu_recovery_action", "GPU Reset", "gpu-recovery-action", FAIL, Action.RESET_GPU),
    ("gpu_recovery_action", "Reset", "gpu-recovery-action", FAIL, Action.RESET_GPU),
    ("gpu_recovery_action", "Drain and Reset", "gpu-recovery-action", FAIL, Action.RESET_GPU),
    ("gpu_recovery_action", "Node Reboot", "gpu-recovery-action", FAIL, Action.REBOOT),
    ("gpu_recovery_action", "Drain P2P", "gpu-recovery-action", WARN, Action.DRAIN),
    ("gpu_recovery_action", "Dance", "gpu-recovery-action", UNKNOWN, Action.NONE),
    ("remapped_rows", "GPU is lost", "gpu-lost", FAIL, Action.REBOOT),
    ("temperature/gpu_temp", "GPU requires reset", "gpu-lost", FAIL, Action.RESET_GPU),
    ("product_brand", "Unknown Error", "gpu-readable", FAIL, Action.REBOOT),
    ("serial", "[Insufficient Permissions]", "gpu-readable", UNKNOWN, Action.NONE),
    ("power_smoothing", "Insufficient Permissions", "gpu-readable", PASS, Action.NONE),
    ("persistence_mode", "Disabled", "gpu-persistence", WARN, Action.CONFIG),
    ("compute_mode", "Exclusive_Process", "gpu-compute-mode", WARN, Action.CONFIG),
    ("gsp_firmware_version", "N/A", "gpu-gsp", FAIL, Action.REBOOT),
    ("mig_mode/pending_mig", "Enabled", "gpu-mig", FAIL, Action.RESET_GPU),
    ("product_name", "NVIDIA A100-SXM4-80GB", "gpu-model", FAIL, Action.CONFIG),
    ("ecc_mode/current_ecc", "Disabled", "gpu-ecc-mode", WARN, Action.REBOOT),
    ("ecc_errors/volatile/dram_uncorrectable", "5", "gpu-ecc-uncorrected", FAIL, Action.RESET_GPU),
    ("ecc_errors/volatile/sram_uncorrectable_parity", "1", "gpu-ecc-uncorrected", FAIL, Action.RESET_GPU),
    ("ecc_errors/volatile/sram_uncorrectable_secded", "1", "gpu-ecc-uncorrected", FAIL, Action.RESET_GPU),
    ("ecc_errors/aggregate/sram_threshold_exceeded", "Yes", "gpu-ecc-sram-threshold", FAIL, Action.RMA),
    ("ecc_errors/aggregate/dram_uncorrectable", "15", "gpu-ecc-lifetime", PASS, Action.NONE),
    ("ecc_errors/aggregate/dram_uncorrectable", "16", "gpu-ecc-lifetime", WARN, Action.NONE),
    ("ecc_errors/aggregate/sram_uncorrectable_secded", "5", "gpu-ecc-lifetime", WARN, Action.NONE),
    ("ecc_errors/aggregate/dram_correctable", "20000001", "gpu-ecc-corrected", WARN, Action.NONE),
    ("ecc_errors/aggregate/sram_correctable", "10001", "gpu-ecc-corrected", WARN, Action.NONE),
    ("remapped_rows/remapped_row_pending", "Yes", "gpu-remap-pending", WARN, Action.RESET_GPU),
    ("remapped_rows/remapped_row_failure", "Yes", "gpu-remap-failed", FAIL, Action.RMA),
    (
        "remapped_rows/row_remapper_histogram/row_remapper_histogram_low",
        "1 bank(s)",
        "gpu-remap-banks",
        WARN,
        Action.NONE,
    ),
    (
        "remapped_rows/row_remapper_histogram/row_remapper_histogram_none",
        "1 bank(s)",
        "gpu-remap-banks",
        FAIL,
        Action.RMA,
    ),
    ("ecc_errors/channel_repair_pending", "Yes", "gpu-repair-pending", WARN, Action.RESET_GPU),
    ("ecc_errors/tpc_repair_pending", "Yes", "gpu-repair-pending", WARN, Action.RESET_GPU),
    ("ecc_errors/unrepairable_memory", "Yes", "gpu-unrepairable-memory", FAIL, Action.RMA),
    ("fb_memory_usage/total", "65000 MiB", "gpu-memory-size", FAIL, Action.RESET_GPU),
    ("fb_memory_usage/used", "150 MiB", "gpu-memory-leak", PASS, Action.NONE),
    ("fb_memory_usage/used", "5000 MiB", "gpu-memory-leak", FAIL, Action.REBOOT),
    (WIDTH, "8x", "gpu-pcie-width", FAIL, Action.DRAIN),
    (GEN, "1", "gpu-pcie-gen", WARN, Action.NONE),
    ("temperature/gpu_temp_tlimit", "4 C", "gpu-temperature", WARN, Action.NONE),
    ("temperature/gpu_temp_tlimit", "0 C", "gpu-temperature", FAIL, Action.DRAIN),
    ("temperature/gpu_temp_tlimit", "-3 C", "gpu-temperature", FAIL, Action.DRAIN),
    ("temperature/memory_temp", "92 C", "gpu-memory-temperature", WARN, Action.NONE),
    ("temperature/memory_temp", "96 C", "gpu-memory-temperature", FAIL, Action.DRAIN),
    (EVENT + "hw_slowdown", "Active", "gpu-throttle", FAIL, Action.DRAIN),
    (EVENT + "hw_thermal_slowdown", "Active", "gpu-throttle", FAIL, Action.DRAIN),
    (EVENT + "hw_power_brake_slowdown", "Active", "gpu-throttle", FAIL, Action.DRAIN),
    (EVENT + "sw_thermal_slowdown", "Active", "gpu-throttle", WARN, Action.NONE),
    (EVENT + "sw_power_cap", "Active", "gpu-throttle", PASS, Action.NONE),
    ("gpu_power_readings/instant_power_draw", "[Unknown Error]", "gpu-power", FAIL, Action.REBOOT),
    ("gpu_power_readings/current_power_limit", "500.00 W", "gpu-power-limit", WARN, Action.CONFIG),
    ("gpu_power_readings/current_power_limit", "699.00 W", "gpu-power-limit", PASS, Action.NONE),
    ("performance_state", "P?", "gpu-performance-state", UNKNOWN, Action.NONE),
    ("fabric/state", "In Progress", "gpu-fabric", FAIL, Action.DRAIN),
    ("fabric/status", "Failure", "gpu-fabric", FAIL, Action.DRAIN),
    ("fabric/health/summary", "Unhealthy", "gpu-fabric-health", FAIL, Action.DRAIN),
]


@pytest.mark.parametrize(("path", "text", "check", "verdict", "action"), ONE_VALUE)
def test_one_changed_value_gives_its_verdict_and_action(
    path: str, text: str, check: str, verdict: Verdict, action: Action
) -> None:
    box = gpu_change(path, text)(healthy())
    finding = next(item for item in box.findings(check) if item.device == bus_id(0))
    assert (finding.verdict, finding.action) == (verdict, action), finding
    if verdict in (FAIL, WARN):
        assert finding.message
        assert finding.remedy
        assert finding.evidence
    other = next(item for item in box.findings(check) if item.device == bus_id(1))
    assert other.verdict is not FAIL


@pytest.mark.parametrize(("path", "text", "check"), [row[:3] for row in ONE_VALUE if row[3] is FAIL])
def test_a_failing_gpu_fails_only_what_concerns_it(path: str, text: str, check: str) -> None:
    failed = {item.id for item in gpu_change(path, text)(healthy()).report().findings if item.verdict is FAIL}
    together = {
        "gpu-power": {"gpu-readable"},
        "gpu-model": {"gpu-memory-size", "nvlink-links"},
    }
    assert failed - {check} <= together.get(check, set()) | {"gpu-lost"}


def test_the_healthy_machine_has_neither_fail_nor_warn_nor_unknown() -> None:
    for count in (1, 2, 8):
        report = healthy(count).report()
        assert {item.id for item in report.findings if item.verdict not in (PASS, SKIP)} == set()
        assert report.verdict is PASS
        assert report.action is Action.NONE


def test_report_names_the_costliest_action() -> None:
    box = healthy().gpus(
        change(h100(0), "ecc_errors/volatile/dram_uncorrectable", "1"),
        change(h100(1), "remapped_rows/remapped_row_failure", "Yes"),
    )
    assert box.report().action is Action.RMA


def test_every_check_says_what_it_is() -> None:
    for check in CHECKS.values():
        assert check.title
        assert check.reads
        assert check.rule
        assert check.source
        assert check.id == check.id.lower()


def test_old_schema_counts_corrected_errors_as_single_bits() -> None:
    box = healthy(1).gpus(change(volta(), "ecc_errors/aggregate/single_bit/total", "20000001"), driver="460.32.03")
    assert box.verdict("gpu-ecc-corrected") is WARN
    assert healthy(1).gpus(volta(), driver="460.32.03").verdict("gpu-ecc-corrected") is PASS


def test_old_schema_counts_double_bit_errors(snapshot: SnapshotAssertion) -> None:
    box = healthy(1).gpus(change(volta(), "ecc_errors/volatile/double_bit/total", "2"), driver="460.32.03")
    finding = box.finding("gpu-ecc-uncorrected")
    assert finding.verdict is FAIL
    assert finding.value == snapshot


@pytest.mark.parametrize(
    ("path", "text", "verdict", "action"),
    [
        ("retired_pages/pending_retirement", "Yes", FAIL, Action.REBOOT),
        ("retired_pages/double_bit_retirement/retired_count", "11", WARN, Action.NONE),
        ("retired_pages/double_bit_retirement/retired_count", "63", FAIL, Action.RMA),
        ("retired_pages/multiple_single_bit_retirement/retired_count", "10", PASS, Action.NONE),
    ],
)
def test_retired_pages(path: str, text: str, verdict: Verdict, action: Action) -> None:
    finding = healthy(1).gpus(change(volta(), path, text), driver="460.32.03").finding("gpu-retired-pages")
    assert (finding.verdict, finding.action) == (verdict, action)


@pytest.mark.parametrize(("celsius", "verdict"), [("60 C", PASS), ("83 C", WARN), ("87 C", FAIL)])
def test_cards_with_absolute_limits_are_judged_by_them(celsius: str, verdict: Verdict) -> None:
    box = healthy(1).gpus(change(volta(), "temperature/gpu_temp", celsius), driver="460.32.03")
    assert box.verdict("gpu-temperature") is verdict


def test_consumer_cards_are_not_asked_for_what_they_lack() -> None:
    texts = change(change(h100(), "product_name", "NVIDIA GeForce RTX 4090"), "product_architecture", "Ada Lovelace")
    for path in ("ecc_errors", "remapped_rows", "ecc_mode", "fabric"):
        texts = change(texts, path, None)
    report = healthy(1).gpus(texts).expecting(model="RTX 4090").report()
    found = {item.id: item for item in report.findings}
    for check in ("gpu-ecc-uncorrected", "gpu-remap-failed", "gpu-ecc-mode", "gpu-fabric"):
        assert found[check].verdict is SKIP, check


def test_ecc_switched_off_for_good_is_a_setting() -> None:
    texts = change(change(h100(), "ecc_mode/current_ecc", "Disabled"), "ecc_mode/pending_ecc", "Disabled")
    finding = healthy(1).gpus(texts).finding("gpu-ecc-mode")
    assert (finding.verdict, finding.action) == (WARN, Action.CONFIG)


def test_pending_remap_after_an_uncorrected_error_fails() -> None:
    box = gpu_change("remapped_rows/remapped_row_pending", "Yes")(healthy())
    box = box.log("2026-09-21T14:00:00+0000 n kernel: NVRM: Xid (PCI:0000:18:00): 95, pid=7, Uncontained: LTC TAG")
    assert box.verdict("gpu-remap-pending") is FAIL
    blind = gpu_change("remapped_rows/remapped_row_pending", "Yes")(healthy())
    blind = blind.command("kernel_log", None).command("dmesg", None)
    assert blind.verdict("gpu-remap-pending") is WARN


# PCIe: baseline, port, cloud machines


def with_baseline(box: Box, baseline: GpuBaseline) -> Box:
    return box.knowing(baselines={box.evidence.machine: Baseline(NOW, {bus_id(0): baseline})})


def test_narrow_link_of_a_cloud_machine_warns_until_it_is_accepted() -> None:
    box = gpu_change(WIDTH, "8x")(healthy()).paths({f"/sys/bus/pci/devices/{bus_id(0)}/upstream/max_link_width": None})
    finding = next(item for item in box.findings("gpu-pcie-width") if item.device == bus_id(0))
    assert finding.verdict is WARN
    assert "baseline --accept" in finding.remedy
    accepted = with_baseline(box, GpuBaseline(pcie_width=8))
    assert accepted.verdict("gpu-pcie-width") is PASS
    worse = with_baseline(gpu_change(WIDTH, "4x")(healthy()), GpuBaseline(pcie_width=8))
    assert worse.verdict("gpu-pcie-width") is FAIL


def test_another_card_in_the_slot_is_not_judged_by_the_baseline_of_the_old_one() -> None:
    texts = change(change(h100(), "product_name", "NVIDIA L40S"), "fb_memory_usage/total", "46000 MiB")
    box = healthy(1).gpus(texts).expecting(model="L40S")
    other, own = (GpuBaseline(uuid=name, memory_mib=80_000) for name in (uuid(7), uuid(0)))
    assert with_baseline(box, own).verdict("gpu-memory-size") is FAIL
    finding = with_baseline(box, other).finding("gpu-memory-size")
    assert finding.verdict is SKIP
    assert "baseline --accept" in finding.message
    redacted = GpuBaseline(uuid=card_of(uuid(0)), memory_mib=80_000)
    assert with_baseline(box, redacted).verdict("gpu-memory-size") is FAIL


def test_slot_that_is_no_wider_is_no_fault() -> None:
    box = gpu_change(WIDTH, "8x")(healthy()).paths({f"/sys/bus/pci/devices/{bus_id(0)}/upstream/max_link_width": "8"})
    assert box.verdict("gpu-pcie-width") is WARN


def test_card_that_is_narrower_than_its_slot_is_as_wide_as_it_can_be() -> None:
    folder = f"/sys/bus/pci/devices/{bus_id(0)}"
    box = gpu_change(WIDTH, "8x")(healthy()).paths({f"{folder}/max_link_width": "8"})
    assert box.verdict("gpu-pcie-width") is PASS


@pytest.mark.parametrize("port", ["32", "0", "255"])
def test_port_of_a_virtual_machine_says_nothing_of_wires(port: str) -> None:
    folder = f"/sys/bus/pci/devices/{bus_id(0)}"
    box = gpu_change(WIDTH, "8x")(healthy()).paths({f"{folder}/upstream/max_link_width": port})
    assert box.verdict("gpu-pcie-width") is WARN


def test_replays_of_an_idle_gpu_are_judged_by_the_speed_it_can_have() -> None:
    texts = change(change(h100(0), GEN, "1"), "pci/replay_counter", "140")
    box = healthy(1).gpus(texts).knowing(history={"gpu-01": [remembered(gpu={"replays": 40.0})]})
    assert box.verdict("gpu-pcie-replays") is PASS


def test_generation_is_judged_in_p0_only() -> None:
    idle = change(change(h100(0), GEN, "1"), "performance_state", "P8")
    assert healthy(1).gpus(idle).verdict("gpu-pcie-gen") is SKIP
    slow = with_baseline(gpu_change(GEN, "3")(healthy()), GpuBaseline(pcie_gen=5))
    assert slow.verdict("gpu-pcie-gen") is FAIL


def test_low_performance_state_is_judged_when_not_idle() -> None:
    waits = change(change(h100(0), "performance_state", "P8"), EVENT + "gpu_idle", "Not Active")
    assert healthy(1).gpus(waits).verdict("gpu-performance-state") is PASS
    busy = change(waits, "utilization/gpu_util", "80 %")
    assert healthy(1).gpus(busy).verdict("gpu-performance-state") is WARN
    assert healthy(1).gpus(change(h100(0), "performance_state", "P8")).verdict("gpu-performance-state") is PASS
    capped = change(busy, EVENT + "sw_power_cap", "Active")
    assert healthy(1).gpus(capped).verdict("gpu-performance-state") is PASS


def test_memory_is_compared_with_the_baseline_where_the_name_has_no_size() -> None:
    texts = change(change(h100(), "product_name", "NVIDIA L40S"), "fb_memory_usage/total", "46000 MiB")
    box = healthy(1).gpus(texts).expecting(model="L40S")
    assert box.verdict("gpu-memory-size") is SKIP
    assert with_baseline(box, GpuBaseline(memory_mib=46000)).verdict("gpu-memory-size") is PASS
    assert with_baseline(box, GpuBaseline(memory_mib=48000)).verdict("gpu-memory-size") is FAIL


def test_memory_in_the_name_of_a_grace_hopper_is_that_of_its_processor() -> None:
    """480 GB are the LPDDR of Grace; the GPU has 96 GB."""
    texts = change(change(h100(), "product_name", "NVIDIA GH200 480GB"), "fb_memory_usage/total", "97871 MiB")
    box = healthy(1).gpus(texts).expecting(model="GH200")
    assert box.verdict("gpu-memory-size") is SKIP
    assert with_baseline(box, GpuBaseline(memory_mib=97871)).verdict("gpu-memory-size") is PASS
    assert with_baseline(box, GpuBaseline(memory_mib=144000)).verdict("gpu-memory-size") is FAIL


# Deltas


def remembered(**counters: dict[str, float]) -> Snapshot:
    return Snapshot(time=NOW - 600, boot_id=BOOT, counters={f"gpu {uuid(0)}": counters["gpu"]})


@pytest.mark.parametrize(("before", "verdict"), [(40, PASS), (0, PASS), (-300, WARN), (-9_000, FAIL)])
def test_replays_are_judged_by_their_growth(before: int, verdict: Verdict) -> None:
    # gen 5 x16: 31 per minute are normal, ten minutes have passed
    snapshot = remembered(gpu={"replays": float(before)})
    box = healthy().knowing(history={"gpu-01": [snapshot]})
    finding = next(item for item in box.findings("gpu-pcie-replays") if item.device == bus_id(0))
    assert finding.verdict is verdict


def test_growth_is_not_computed_over_a_reboot_or_a_reset() -> None:
    other = replace(remembered(gpu={"replays": 0.0}), boot_id="another")
    assert healthy().knowing(history={"gpu-01": [other]}).verdict("gpu-pcie-replays") is SKIP
    reset = remembered(gpu={"replays": 5000.0})
    assert healthy().knowing(history={"gpu-01": [reset]}).verdict("gpu-pcie-replays") is SKIP


def test_throttling_since_the_last_run_warns_and_old_throttling_does_not() -> None:
    counter = "clocks_event_reasons_counters/clocks_event_reasons_counters_sw_therm_slowdown"
    box = gpu_change(counter, "7000000 us")(healthy())
    assert box.verdict("gpu-throttle-time") is SKIP
    grown = box.knowing(history={"gpu-01": [remembered(gpu={"software thermal slowdown time": 1_000_000.0})]})
    finding = next(item for item in grown.findings("gpu-throttle-time") if item.device == bus_id(0))
    assert finding.verdict is WARN
    assert "+6.0 s in 600 s" in finding.value
    blink = box.knowing(history={"gpu-01": [remembered(gpu={"software thermal slowdown time": 6_999_999.0})]})
    assert blink.verdict("gpu-throttle-time") is not WARN
    same = box.knowing(history={"gpu-01": [remembered(gpu={"software thermal slowdown time": 7_000_000.0})]})
    assert same.verdict("gpu-throttle-time") is not WARN


# Processes


@pytest.mark.parametrize(
    ("processes", "groups", "verdict"),
    [
        ("77,C,python,5000 MiB", {"77": {"cgroup": "0::/kubepods.slice/x", "name": "python"}}, PASS),
        ("77,C,python,5000 MiB", {"77": {"cgroup": "0::/user.slice", "name": "python"}}, WARN),
        ("77,C,[Not Found],5000 MiB", {}, WARN),
        ("77,C,Unknown Error,5000 MiB", {}, WARN),
        ("77,C,python,5000 MiB", {}, UNKNOWN),
        ("77,C,python,5000 MiB", {"77": {"cgroup": "", "name": ""}}, UNKNOWN),
        ("77,G,Xorg,22 MiB", {}, PASS),
    ],
)
def test_processes_of_the_gpu(processes: str, groups: dict[str, dict[str, str]], verdict: Verdict) -> None:
    box = healthy(1).gpus(change(h100(), "processes", processes)).fact("gpu_processes", groups)
    assert box.verdict("gpu-stray-process") is verdict


@pytest.mark.parametrize("text", [None, "N/A", "Unknown Error", "ERR!"])
def test_processes_that_are_not_known_are_neither_none_nor_a_leak(text: str | None) -> None:
    box = healthy(1).gpus(change(change(h100(), "processes", text), "fb_memory_usage/used", "800 MiB"))
    assert box.verdict("gpu-stray-process") is UNKNOWN
    assert box.verdict("gpu-memory-leak") is UNKNOWN


@pytest.mark.parametrize("name", ["GRID V100D-8Q", "NVIDIA A10-24Q", "NVIDIA A100-40C"])
def test_a_vgpu_has_reserved_memory_and_no_gsp(name: str) -> None:
    texts = {**h100(), "product_name": name, "fb_memory_usage/used": "1900 MiB", "gsp_firmware_version": "N/A"}
    box = healthy(1).gpus(texts)
    assert box.verdict("gpu-memory-leak") is SKIP
    assert box.verdict("gpu-gsp") is SKIP


def test_memory_in_use_by_a_process_is_no_leak() -> None:
    texts = change(change(h100(), "processes", "77,C,python,5000 MiB"), "fb_memory_usage/used", "5000 MiB")
    assert healthy(1).gpus(texts).verdict("gpu-memory-leak") is PASS


# MIG


def mig(count: int) -> Texts:
    texts = change(change(h100(), "mig_mode/current_mig", "Enabled"), "mig_mode/pending_mig", "Enabled")
    return change(texts, "mig_devices", str(count) if count else "None")


def test_mig_instances() -> None:
    assert healthy(1).gpus(mig(4)).verdict("gpu-mig") is PASS
    assert healthy(1).gpus(mig(0)).verdict("gpu-mig") is WARN
    assert healthy(1).gpus(mig(4)).expecting(mig=7).verdict("gpu-mig") is FAIL
    assert healthy(1).gpus(mig(7)).expecting(mig=7).verdict("gpu-mig") is PASS


def test_mig_instances_of_the_layout_are_those_of_all_gpus_together() -> None:
    other = change(mig(3), "uuid", uuid(1))
    assert healthy().gpus(mig(4), other).expecting(mig=7).verdict("gpu-mig") is PASS
    assert healthy().gpus(mig(4), other).expecting(mig=8).verdict("gpu-mig") is FAIL
    assert healthy().expecting(mig=2).verdict("gpu-mig") is FAIL


def test_mig_on_some_gpus_only_fails() -> None:
    other = {**h100(1)}
    assert healthy().gpus(mig(2), other).verdict("gpu-mig-mixed") is FAIL
    assert healthy().gpus(mig(2), change(other, "mig_mode/current_mig", "N/A")).verdict("gpu-mig-mixed") is UNKNOWN
    neither = [change(h100(index), "mig_mode/current_mig", "N/A") for index in (0, 1)]
    assert healthy().gpus(*neither).verdict("gpu-mig-mixed") is SKIP


# infoROM


def test_inforom_warning_around_the_answer() -> None:
    around = "WARNING: infoROM is corrupted at gpu 0000:18:00.0\n"
    finding = healthy().output("nvidia_smi_xml", smi_xml([h100(0), h100(1)], around=around)).finding("gpu-inforom")
    assert (finding.verdict, finding.action, finding.device) == (FAIL, Action.RMA, bus_id(0))


def test_inforom_warning_without_any_answer() -> None:
    box = healthy().command("nvidia_smi_xml", replace(ran("WARNING: infoROM is corrupted at gpu 0000:18:00.0"), rc=14))
    assert box.verdict("gpu-inforom") is FAIL
    assert box.finding("driver-status").action is Action.RMA


def test_inforom_checksum_comes_from_the_csv() -> None:
    csv = "pci.bus_id, inforom.checksum_validation\n00000000:18:00.0, valid\n00000000:19:00.0, invalid\n"
    finding = healthy().output("nvidia_smi_csv", csv).finding("gpu-inforom")
    assert (finding.verdict, finding.device) == (FAIL, bus_id(1))


@pytest.mark.parametrize(
    ("text", "verdict"), [("[Unknown Error]", UNKNOWN), ("ERR!", UNKNOWN), ("[N/A]", SKIP), ("valid", PASS)]
)
def test_inforom_checksum_that_is_no_value_is_no_good_one(text: str, verdict: Verdict) -> None:
    csv = f"pci.bus_id, inforom.checksum_validation\n00000000:18:00.0, {text}\n"
    assert healthy(1).output("nvidia_smi_csv", csv).verdict("gpu-inforom") is verdict


# Thresholds


def test_a_sku_of_the_site_may_have_its_own_number() -> None:
    limits: Limits = LIMITS.overridden({"skus": {"h100": {"temperature-margin": 60}}})
    finding = healthy().knowing(limits=limits).finding("gpu-temperature")
    assert finding.verdict is WARN
    assert finding.source == "temperature-margin: site, skus.h100"
    other = healthy().knowing(limits=limits).expecting(sku="other")
    assert other.verdict("gpu-temperature") is PASS


def test_a_finding_says_whose_threshold_it_is(snapshot: SnapshotAssertion) -> None:
    finding = gpu_change("ecc_errors/aggregate/dram_correctable", "20000001")(healthy()).finding("gpu-ecc-corrected")
    assert finding.source == snapshot
    assert LIMITS.defaults["ecc-corrected-dram"] == Limit(20_000_000, "AZ")


def test_past_incidents_survive_the_history() -> None:
    assert (
        PastIncident(79, uuid(0), BOOT, NOW)
        in Snapshot(NOW, BOOT, incidents=(PastIncident(79, uuid(0), BOOT, NOW),)).incidents
    )
