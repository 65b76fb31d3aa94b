"""All GPU values that checks read: their names, their paths in each schema, and the GPUs that must report them.

Paths are tried in order. They differ by driver generation (XML), by label (-q text), or are CSV fields. A later path
never replaces a missing earlier one of the same generation: a missing element stays missing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum


class Need(StrEnum):
    """Which GPUs must report a field: absent there is UNKNOWN, elsewhere SKIP."""

    ALWAYS = "always"
    DATACENTER = "datacenter"
    REMAPPING = "datacenter, Ampere or newer"
    RETIREMENT = "datacenter, before Ampere"
    FABRIC = "NVSwitch systems"
    OPTIONAL = "never"


@dataclass(frozen=True, slots=True)
class Field:
    """One value. since: the first driver branch with it. until: the first branch without it, 0 for none.

    least, most: other numbers are beyond physics, and invalid.
    """

    name: str
    paths: tuple[str, ...]
    need: Need = Need.OPTIONAL
    since: int = 0
    until: int = 0
    least: float = 0.0
    most: float = math.inf


def _field(
    name: str,
    paths: str,
    need: Need = Need.OPTIONAL,
    since: int = 0,
    *,
    until: int = 0,
    least: float = 0.0,
    most: float = math.inf,
) -> Field:
    return Field(name, tuple(paths.split()), need, since, until, least, most)


# more than any card has or will have soon: MiB, degrees Celsius, MHz, W
_MEMORY, _HEAT, _CLOCK, _POWER = 16 * 1024 * 1024, 200, 10_000, 10_000

PRODUCT = _field("product", "product_name csv/name", Need.ALWAYS)
ARCHITECTURE = _field("architecture", "product_architecture")
UUID = _field("uuid", "uuid gpu_uuid csv/uuid", Need.ALWAYS)
SERIAL = _field("serial", "serial serial_number csv/serial")
DEVICE_ID = _field("device id", "pci/pci_device_id pci/device_id csv/pci.device_id")
VBIOS = _field("VBIOS", "vbios_version csv/vbios_version", Need.ALWAYS)
INFOROM = _field("infoROM image", "inforom_version/img_version inforom_version/image_version csv/inforom.img")
INFOROM_CHECKSUM = _field("infoROM checksum", "csv/inforom.checksum_validation")
GSP = _field("GSP firmware", "gsp_firmware_version", Need.DATACENTER, 515)
PERSISTENCE = _field("persistence mode", "persistence_mode csv/persistence_mode", Need.ALWAYS)
COMPUTE_MODE = _field("compute mode", "compute_mode csv/compute_mode", Need.ALWAYS)
RECOVERY = _field("recovery action", "gpu_recovery_action csv/gpu_recovery_action", Need.ALWAYS, 570)
# Before 570 the driver says the same in two flags; later ones print the flags as deprecated, or not at all.
RESET_REQUIRED = _field("reset required", "gpu_reset_status/reset_required", Need.ALWAYS, 525, until=570)
DRAIN_AND_RESET = _field(
    "drain and reset recommended", "gpu_reset_status/drain_and_reset_recommended", Need.DATACENTER, 525, until=570
)
PSTATE = _field("performance state", "performance_state csv/pstate", Need.ALWAYS)

MEMORY_TOTAL = _field("memory total", "fb_memory_usage/total csv/memory.total", Need.ALWAYS, most=_MEMORY)
MEMORY_USED = _field("memory used", "fb_memory_usage/used csv/memory.used", Need.ALWAYS, most=_MEMORY)

ECC_CURRENT = _field("ECC mode", "ecc_mode/current_ecc ecc_mode/current csv/ecc.mode.current", Need.DATACENTER)
ECC_PENDING = _field("pending ECC mode", "ecc_mode/pending_ecc ecc_mode/pending csv/ecc.mode.pending", Need.DATACENTER)
_VOLATILE = "ecc_errors/volatile"
_AGGREGATE = "ecc_errors/aggregate"
SRAM_UNC = _field("volatile SRAM uncorrected", f"{_VOLATILE}/sram_uncorrectable", Need.DATACENTER)
SRAM_UNC_PARITY = _field(
    "volatile SRAM uncorrected (parity)",
    f"{_VOLATILE}/sram_uncorrectable_parity csv/ecc.errors.uncorrected.volatile.sram.parity",
    Need.DATACENTER,
)
SRAM_UNC_SECDED = _field(
    "volatile SRAM uncorrected (SEC-DED)",
    f"{_VOLATILE}/sram_uncorrectable_secded {_VOLATILE}/sram_uncorrectable_sec_ded "
    "csv/ecc.errors.uncorrected.volatile.sram.secded",
    Need.DATACENTER,
)
DRAM_UNC = _field(
    "volatile DRAM uncorrected",
    f"{_VOLATILE}/dram_uncorrectable csv/ecc.errors.uncorrected.volatile.dram",
    Need.DATACENTER,
)
DOUBLE_BIT = _field(
    "volatile double bit errors", f"{_VOLATILE}/double_bit/total {_VOLATILE}/double_bit/device_memory", Need.DATACENTER
)
SINGLE_BIT = _field("volatile single bit errors", f"{_VOLATILE}/single_bit/total", Need.DATACENTER)
AGG_SRAM_UNC = _field("lifetime SRAM uncorrected", f"{_AGGREGATE}/sram_uncorrectable", Need.DATACENTER)
AGG_SRAM_PARITY = _field(
    "lifetime SRAM uncorrected (parity)", f"{_AGGREGATE}/sram_uncorrectable_parity", Need.DATACENTER
)
AGG_SRAM_SECDED = _field(
    "lifetime SRAM uncorrected (SEC-DED)",
    f"{_AGGREGATE}/sram_uncorrectable_secded {_AGGREGATE}/sram_uncorrectable_sec_ded",
    Need.DATACENTER,
)
AGG_DRAM_UNC = _field("lifetime DRAM uncorrected", f"{_AGGREGATE}/dram_uncorrectable", Need.DATACENTER)
AGG_DOUBLE_BIT = _field("lifetime double bit errors", f"{_AGGREGATE}/double_bit/total", Need.DATACENTER)
AGG_SINGLE_BIT = _field("lifetime single bit errors", f"{_AGGREGATE}/single_bit/total", Need.DATACENTER)
AGG_SRAM_CORR = _field("lifetime SRAM corrected", f"{_AGGREGATE}/sram_correctable", Need.DATACENTER)
AGG_DRAM_CORR = _field("lifetime DRAM corrected", f"{_AGGREGATE}/dram_correctable", Need.DATACENTER)
SRAM_THRESHOLD = _field(
    "SRAM threshold exceeded",
    f"{_AGGREGATE}/sram_threshold_exceeded csv/ecc.errors.uncorrected.aggregate.sram.thresholdExceeded",
    Need.REMAPPING,
    550,
)
CHANNEL_REPAIR = _field("channel repair pending", "ecc_errors/channel_repair_pending", Need.REMAPPING, 575)
TPC_REPAIR = _field("TPC repair pending", "ecc_errors/tpc_repair_pending", Need.REMAPPING, 575)
UNREPAIRABLE = _field("unrepairable memory", "ecc_errors/unrepairable_memory")

_REMAP = "remapped_rows"
_HISTOGRAM = f"{_REMAP}/row_remapper_histogram/row_remapper_histogram"
_BANKS = f"{_REMAP}/bank_remap_availability_histogram"
REMAP_CORR = _field(
    "remapped rows (corrected)", f"{_REMAP}/remapped_row_corr {_REMAP}/correctable_error", Need.REMAPPING
)
REMAP_UNC = _field(
    "remapped rows (uncorrected)", f"{_REMAP}/remapped_row_unc {_REMAP}/uncorrectable_error", Need.REMAPPING
)
REMAP_PENDING = _field(
    "row remap pending",
    f"{_REMAP}/remapped_row_pending {_REMAP}/pending csv/remapped_rows.pending",
    Need.REMAPPING,
    450,
)
REMAP_FAILED = _field(
    "row remap failed",
    f"{_REMAP}/remapped_row_failure {_REMAP}/remapping_failure_occurred csv/remapped_rows.failure",
    Need.REMAPPING,
    450,
)
BANKS_LOW = _field("banks with low remap availability", f"{_HISTOGRAM}_low {_BANKS}/low", Need.REMAPPING, 460)
BANKS_NONE = _field("banks with no remap availability", f"{_HISTOGRAM}_none {_BANKS}/none", Need.REMAPPING, 460)
# since Rubin, beside the rows
BANK_REMAP_PENDING = _field("bank remap pending", "remapped_banks/bank_remapper_pending")
BANK_GROUPS_NONE = _field(
    "groups with no bank left", "remapped_banks/bank_remapper_histogram/bank_remapper_histogram_none"
)
_RETIRED = "retired_pages"
RETIRED_SINGLE = _field(
    "pages retired for single bit errors",
    f"{_RETIRED}/multiple_single_bit_retirement/retired_count {_RETIRED}/single_bit_ecc",
    Need.RETIREMENT,
)
RETIRED_DOUBLE = _field(
    "pages retired for double bit errors",
    f"{_RETIRED}/double_bit_retirement/retired_count {_RETIRED}/double_bit_ecc",
    Need.RETIREMENT,
)
RETIRED_PENDING = _field(
    "page retirement pending", f"{_RETIRED}/pending_retirement {_RETIRED}/pending_page_blacklist", Need.RETIREMENT
)
# the XML of drivers up to 430; later ones print both
RETIRED_PENDING_OLD = _field("page blacklist pending", f"{_RETIRED}/pending_blacklist", Need.RETIREMENT, until=431)

UTILISATION = _field(
    "GPU utilisation", "utilization/gpu_util utilization/gpu csv/utilization.gpu", Need.ALWAYS, most=100
)

_LINK = "pci/pci_gpu_link_info"
_TEXT_LINK = "pci/gpu_link_info"
WIDTH = _field(
    "PCIe width",
    f"{_LINK}/link_widths/current_link_width {_TEXT_LINK}/link_width/current csv/pcie.link.width.current",
    Need.ALWAYS,
    most=32,
)
WIDTH_MAX = _field(
    "PCIe width of the card",
    f"{_LINK}/link_widths/max_link_width {_TEXT_LINK}/link_width/max csv/pcie.link.width.max",
    Need.ALWAYS,
    most=32,
)
GEN = _field(
    "PCIe generation",
    f"{_LINK}/pcie_gen/current_link_gen {_TEXT_LINK}/pcie_generation/current csv/pcie.link.gen.gpucurrent",
    Need.ALWAYS,
    most=9,
)
GEN_MAX = _field(
    "PCIe generation of card and slot",
    f"{_LINK}/pcie_gen/max_link_gen {_TEXT_LINK}/pcie_generation/max csv/pcie.link.gen.max",
    Need.ALWAYS,
    most=9,
)
REPLAY = _field("PCIe replays", "pci/replay_counter pci/replays_since_reset", Need.ALWAYS)

TEMPERATURE = _field(
    "temperature",
    "temperature/gpu_temp temperature/gpu_current_temp csv/temperature.gpu",
    Need.ALWAYS,
    least=-60,
    most=_HEAT,
)
TLIMIT = _field(
    "temperature margin",
    "temperature/gpu_temp_tlimit temperature/gpu_t_limit_temp csv/temperature.gpu.tlimit",
    least=-150,
    most=_HEAT,
)
TEMP_SLOW = _field(
    "slowdown temperature", "temperature/gpu_temp_slow_threshold temperature/gpu_slowdown_temp", most=_HEAT
)
TEMP_MAX = _field(
    "shutdown temperature", "temperature/gpu_temp_max_threshold temperature/gpu_shutdown_temp", most=_HEAT
)
MEMORY_TEMP = _field(
    "memory temperature", "temperature/memory_temp temperature/memory_current_temp", least=-60, most=_HEAT
)
MEMORY_TEMP_MAX = _field(
    "memory temperature limit",
    "temperature/gpu_temp_max_mem_threshold temperature/memory_max_operating_temp",
    most=_HEAT,
)

_EVENT = "clocks_event_reasons/clocks_event_reason_{0} clocks_throttle_reasons/clocks_throttle_reason_{0}"


def _reason(name: str, tag: str, label: str) -> Field:
    paths = _EVENT.format(tag) + f" clocks_event_reasons/{label} clocks_throttle_reasons/{label}"
    return _field(name, paths, Need.ALWAYS, 390)


IDLE = _reason("idle", "gpu_idle", "idle")
POWER_CAP = _reason("power cap", "sw_power_cap", "sw_power_cap")
HW_SLOWDOWN = _reason("hardware slowdown", "hw_slowdown", "hw_slowdown")
HW_THERMAL = _reason("hardware thermal slowdown", "hw_thermal_slowdown", "hw_slowdown/hw_thermal_slowdown")
POWER_BRAKE = _reason("power brake", "hw_power_brake_slowdown", "hw_slowdown/hw_power_brake_slowdown")
SW_THERMAL = _reason("software thermal slowdown", "sw_thermal_slowdown", "sw_thermal_slowdown")
CLOCK_SETTING = _reason("applications clocks setting", "applications_clocks_setting", "applications_clocks_setting")
SM_CLOCK = _field("SM clock", "clocks/sm_clock clocks/sm csv/clocks.sm", Need.ALWAYS, most=_CLOCK)
SM_CLOCK_MAX = _field(
    "highest SM clock", "max_clocks/sm_clock max_clocks/sm csv/clocks.max.sm", Need.ALWAYS, most=_CLOCK
)
APPLICATION_CLOCK = _field(
    "application clock", "applications_clocks/graphics_clock applications_clocks/graphics csv/clocks.applications.gr"
)
APPLICATION_DEFAULT = _field(
    "default application clock",
    "default_applications_clocks/graphics_clock default_applications_clocks/graphics "
    "csv/clocks.default_applications.gr",
)
LICENSE = _field("vGPU licence", "vgpu_software_licensed_product/license_status grid_licensed_product/license_status")
_COUNTERS = "clocks_event_reasons_counters"
SW_THERMAL_US = _field(
    "software thermal slowdown time",
    f"{_COUNTERS}/{_COUNTERS}_sw_therm_slowdown {_COUNTERS}/sw_thermal_slowdown",
    Need.DATACENTER,
    580,
)
HW_THERMAL_US = _field(
    "hardware thermal slowdown time",
    f"{_COUNTERS}/{_COUNTERS}_hw_therm_slowdown {_COUNTERS}/hw_thermal_slowdown",
    Need.DATACENTER,
    580,
)
POWER_BRAKE_US = _field(
    "power brake time", f"{_COUNTERS}/{_COUNTERS}_hw_power_brake {_COUNTERS}/hw_power_braking", Need.DATACENTER, 580
)

POWER = _field(
    "power draw",
    "gpu_power_readings/instant_power_draw gpu_power_readings/power_draw power_readings/power_draw "
    "gpu_power_readings/instantaneous_power_draw csv/power.draw.instant",
    Need.ALWAYS,
    most=_POWER,
)
POWER_LIMIT = _field(
    "power limit",
    "gpu_power_readings/current_power_limit power_readings/enforced_power_limit csv/enforced.power.limit",
    Need.ALWAYS,
    most=_POWER,
)
POWER_DEFAULT = _field(
    "default power limit",
    "gpu_power_readings/default_power_limit power_readings/default_power_limit csv/power.default_limit",
    Need.ALWAYS,
    most=_POWER,
)

MIG = _field("MIG mode", "mig_mode/current_mig mig_mode/current csv/mig.mode.current", Need.REMAPPING, 450)
MIG_PENDING = _field(
    "pending MIG mode", "mig_mode/pending_mig mig_mode/pending csv/mig.mode.pending", Need.REMAPPING, 450
)
FABRIC_STATE = _field("fabric state", "fabric/state csv/fabric.state", Need.FABRIC, 535)
FABRIC_STATUS = _field("fabric status", "fabric/status csv/fabric.status", Need.FABRIC, 535)
FABRIC_SUMMARY = _field("fabric health", "fabric/health/summary csv/fabric.health.summary", Need.FABRIC, 575)
