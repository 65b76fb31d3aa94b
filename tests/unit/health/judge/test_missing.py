"""What is missing never passes: every value that a check reads is taken away or replaced, one at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pai_install.checks.evidence import NotObservedError
from pai_install.checks.verdict import Verdict
from pai_install.health.evidence import fields
from pai_install.health.evidence.document import CommandResult
from pai_install.health.evidence.fields import Field
from pai_install.health.evidence.parse import nvidia
from pai_install.health.judge.check import GpuCheck
from pai_install.health.judge.evaluate import judge_machine, machine_view
from pai_install.health.judge.rules import GPU_CHECKS
from pai_install.health.judge.view import MachineView
from tests.unit.health.machines import Box, Texts, bus_id, change, h100, healthy, smi_xml, volta

NO_VALUES = ("N/A", "[N/A]", "[Not Supported]", "ERR!", "Unknown Error", "[Unknown Error]", "GPU is lost", "", "banana")
# They look for error words in every field; that is tested on its own below.
# the name of a field, as a record has it -> the field
FIELDS = {field.name: field for field in vars(fields).values() if isinstance(field, Field)}
SCANNERS = {"gpu-lost", "gpu-readable"}
# Free text: any word is a value there.
FREE_TEXT = {"product_name", "vbios_version", "uuid", "gsp_firmware_version", "inforom_version/img_version"}
BOXES = {"hopper": healthy(1).gpus(h100()), "volta": healthy(1).gpus(volta(), driver="460.32.03")}


def view_of(box: Box, texts: Texts) -> MachineView:
    """A machine whose only GPU says `texts`."""
    changed = box.output("nvidia_smi_xml", smi_xml([texts]))
    return machine_view(changed.evidence, box.knowledge)


def passing(view: MachineView) -> dict[str, tuple[GpuCheck, set[str]]]:
    """Check id -> the check and the paths it has read, for those that pass."""
    found = {}
    gpu = view.gpus[0]
    for check in GPU_CHECKS:
        gpu.record.begin()
        view.record.begin()
        if gpu.record.settle(check.judge(gpu, view)).verdict is Verdict.PASS:
            read = {path for name in gpu.record.names for path in FIELDS[name].paths if path in gpu.gpu.texts}
            found[check.id] = (check, read)
    return found


def verdict(check: GpuCheck, view: MachineView) -> Verdict:
    """What the check says of the machine's GPU."""
    gpu = view.gpus[0]
    gpu.record.begin()
    view.record.begin()
    try:
        return gpu.record.settle(check.judge(gpu, view)).verdict
    except NotObservedError as gap:
        return gap.verdict


def cases() -> Iterator[tuple[str, str]]:
    """(box, path) for every text of each kind of GPU."""
    for name, box in BOXES.items():
        for path in view_of(box, h100() if name == "hopper" else volta()).gpus[0].gpu.texts:
            yield name, path


@pytest.mark.parametrize(("name", "path"), list(cases()))
def test_a_check_never_passes_on_a_value_that_is_not_there(name: str, path: str) -> None:
    box, texts = BOXES[name], h100() if name == "hopper" else volta()
    readers = {
        check_id: check
        for check_id, (check, read) in passing(view_of(box, texts)).items()
        if path in read and check_id not in SCANNERS
    }
    for value in (None, *NO_VALUES):
        if value == "banana" and path in FREE_TEXT:
            continue
        view = view_of(box, change(texts, path, value))
        for check_id, check in readers.items():
            assert verdict(check, view) is not Verdict.PASS, f"{check_id} passes with {path}={value!r}"


def test_every_gpu_check_that_applies_was_among_the_readers() -> None:
    passed = {
        check
        for box, texts in ((BOXES["hopper"], h100()), (BOXES["volta"], volta()))
        for check in passing(view_of(box, texts))
    }
    skipped = {"gpu-pcie-replays", "gpu-throttle-time"}  # need an earlier run
    skipped.add("gpu-vgpu-license")  # needs a vGPU
    assert passed | skipped | {"gpu-model"} == {check.id for check in GPU_CHECKS}


@pytest.mark.parametrize("value", ["ERR!", "Unknown Error", "[Unknown Error]"])
@pytest.mark.parametrize("path", sorted(h100()))
def test_error_words_in_any_field_fail_the_gpu(path: str, value: str) -> None:
    if path in {"processes", "mig_devices"}:
        return
    found = {
        finding.id: finding.verdict for finding in judge_machine(view_of(BOXES["hopper"], change(h100(), path, value)))
    }
    assert found["gpu-readable"] is Verdict.FAIL


@pytest.mark.parametrize(
    "container", ["remapped_rows", "ecc_errors", "temperature", "gpu_power_readings", "pci", "fabric"]
)
def test_text_in_place_of_children_reaches_every_check_below_it(container: str) -> None:
    lost = {
        finding.id: finding
        for finding in judge_machine(view_of(BOXES["hopper"], change(h100(), container, "GPU is lost")))
    }
    assert lost["gpu-lost"].verdict is Verdict.FAIL
    readers = {check for check, (_, read) in passing(view_of(BOXES["hopper"], h100())).items()
               if any(path.startswith(container + "/") for path in read)} - SCANNERS  # fmt: skip
    assert readers
    assert {lost[check].verdict for check in readers} == {Verdict.UNKNOWN}


def damaged(result: CommandResult | None) -> Iterator[tuple[str, CommandResult | None]]:
    """The ways in which a command may not answer."""
    yield "not collected", None
    yield "missing", CommandResult(missing=True)
    yield "timed out", CommandResult(timed_out=True, duration_s=30, state="D")
    yield "not started", CommandResult(not_started=True)
    yield "failed", CommandResult(rc=1, stderr="no")
    if result is not None and result.stdout:
        yield "garbage", CommandResult(rc=0, stdout="\x00?!")


def reads(box: Box) -> dict[str, set[str]]:
    """Machine check that passes -> the commands, files and readers that it has read."""
    return {
        finding.id: set(finding.evidence.split(", "))
        for finding in judge_machine(machine_view(box.evidence, box.knowledge))
        if finding.verdict is Verdict.PASS and not finding.device
    }


HEALTHY = healthy()
READS = reads(HEALTHY)
COMMANDS = sorted({name for names in READS.values() for name in names if name in HEALTHY.evidence.commands})
FILES = sorted({name for names in READS.values() for name in names if name.startswith("/")})
FACTS = sorted({name for names in READS.values() for name in names if name in HEALTHY.evidence.facts})
# An empty or strange kernel log, list of held packages or process list is what a quiet machine has.
QUIET = {"kernel_log", "apt_hold", "dkms", "secure_boot", "dpkg_nvidia", "smart_scan"}
# sysfs has the same bus; an answer in time is an answer, even a refusal (that is driver-status); the fabric manager
# need not be a package; the table of mounts shows what the system writes to without the log.
SPARE = {
    ("gpu-count", "lspci"),
    ("gpu-on-bus", "lspci"),
    ("pcie-aer", "lspci"),
    ("gpu-numa-node", "lspci"),
    ("pcie-direct", "lspci"),
    ("driver-responds", "nvidia_smi_xml"),
    ("fabric-manager", "dpkg_nvidia"),
    ("disk-read-only", "kernel_log"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_machine_checks_never_pass_without_their_command(command: str) -> None:
    readers = [check for check, names in READS.items() if command in names and (check, command) not in SPARE]
    for how, result in damaged(HEALTHY.evidence.commands.get(command)):
        if how == "garbage" and command in QUIET:
            continue
        box = HEALTHY.command(command, result)
        if command == "kernel_log":
            box = box.command("dmesg", None)
        after = {finding.id: finding.verdict for finding in judge_machine(machine_view(box.evidence, box.knowledge))}
        for check in readers:
            assert after[check] is not Verdict.PASS, f"{check} passes with {command} {how}"


def test_a_refusal_in_time_is_an_answer_and_a_hang_is_none() -> None:
    refused = HEALTHY.command("nvidia_smi_xml", CommandResult(rc=9, stderr="NVIDIA-SMI has failed"))
    assert refused.verdict("driver-responds") is Verdict.PASS
    assert refused.verdict("driver-status") is Verdict.FAIL
    hung = HEALTHY.command("nvidia_smi_xml", CommandResult(timed_out=True, duration_s=30, state="D"))
    assert hung.verdict("driver-responds") is Verdict.FAIL
    assert hung.verdict("driver-status") is Verdict.UNKNOWN


@pytest.mark.parametrize("path", FILES)
@pytest.mark.parametrize("text", [None, ""])
def test_machine_checks_never_pass_without_their_file(path: str, text: str | None) -> None:
    if path == "/var/log/fabricmanager.log" and text == "":
        return  # a log that was rotated just now
    box = HEALTHY.paths({path: text})
    after = {finding.id: finding.verdict for finding in judge_machine(machine_view(box.evidence, box.knowledge))}
    for check in [check for check, names in READS.items() if path in names]:
        assert after[check] is not Verdict.PASS, f"{check} passes with {path} = {text!r}"


@pytest.mark.parametrize("name", FACTS)
def test_machine_checks_never_pass_when_a_reader_failed(name: str) -> None:
    box = HEALTHY.fact(name, None)
    after = {finding.id: finding.verdict for finding in judge_machine(machine_view(box.evidence, box.knowledge))}
    for check in [check for check, names in READS.items() if name in names]:
        assert after[check] is not Verdict.PASS, f"{check} passes without {name}"


# What is not a field of nvidia-smi: file of sysfs (the end of its path) -> the check that reads it.
SYSFS = {
    f"{bus_id(0)}/aer_dev_fatal": "pcie-aer",
    f"{bus_id(1)}/aer_dev_nonfatal": "pcie-aer",
    f"{bus_id(0)}/aer_dev_correctable": "pcie-aer",
    f"{bus_id(0)}/numa_node": "gpu-numa-node",
    "mlx5_0/ports/1/state": "rdma-ports",
    "mlx5_1/ports/1/phys_state": "rdma-ports",
    "mlx5_0/ports/1/rate": "rdma-ports",
    "mlx5_0/ports/1/counters/link_downed": "rdma-errors",
    "mlx5_1/ports/1/counters/symbol_error": "rdma-errors",
    "mlx5_1/ports/1/counters/port_rcv_errors": "rdma-errors",
    "mc0/ce_count": "host-edac",
    "mc0/ue_count": "host-edac",
}
WORDS_FOR_NOTHING = ("", "N/A", "ERR!", "Unknown Error")
REPLAYS = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: x)\n\t Link 0: Replay Errors: 0\n\t Link 0: Recovery Errors: 0\n"


def second_run(box: Box) -> Box:
    """The machine with this very state as its last run."""
    snapshot = box.report().snapshot
    assert snapshot is not None
    return box.knowing(history={box.evidence.machine: [replace(snapshot, time=snapshot.time - 600)]})


TWICE = second_run(HEALTHY.output("nvidia_smi_nvlink_errors", REPLAYS))


def test_the_checks_below_pass_before_anything_is_taken_away() -> None:
    for check in {*SYSFS.values(), "network-flaps", "nvlink-errors", "gpu-stray-process", "gpu-inforom"}:
        assert TWICE.verdict(check) is Verdict.PASS, check


@pytest.mark.parametrize("value", [None, *WORDS_FOR_NOTHING])
@pytest.mark.parametrize("end", sorted(SYSFS))
def test_no_file_of_sysfs_can_be_taken_away_and_still_pass(end: str, value: str | None) -> None:
    if end.startswith("mc0/") and value is None:
        return  # the other of the two counters is there without it on some machines
    path = next(path for path in TWICE.evidence.files if path.endswith(end))
    assert TWICE.paths({path: value}).verdict(SYSFS[end]) is not Verdict.PASS


@pytest.mark.parametrize("value", WORDS_FOR_NOTHING)
def test_a_network_port_that_does_not_count_is_not_stable(value: str) -> None:
    box = TWICE.paths({"/sys/class/net/eth0/carrier_changes": value})
    assert box.verdict("network-flaps") is Verdict.UNKNOWN


@pytest.mark.parametrize("value", WORDS_FOR_NOTHING)
@pytest.mark.parametrize("counter", ["Replay Errors", "Recovery Errors"])
def test_an_nvlink_counter_that_is_not_there_does_not_stand_still(counter: str, value: str) -> None:
    text = REPLAYS.replace(f"{counter}: 0", f"{counter}: {value}")
    assert TWICE.output("nvidia_smi_nvlink_errors", text).verdict("nvlink-errors") is Verdict.UNKNOWN


@pytest.mark.parametrize("value", [None, "N/A", "ERR!", "Unknown Error", "GPU is lost"])
def test_a_list_of_processes_that_is_not_there_is_not_empty(value: str | None) -> None:
    assert TWICE.gpus(change(h100(0), "processes", value), h100(1)).verdict("gpu-stray-process") is Verdict.UNKNOWN


@pytest.mark.parametrize("value", ["[N/A]", "ERR!", "[Unknown Error]", "GPU is lost"])
def test_a_checksum_that_is_not_there_is_not_valid(value: str) -> None:
    csv = f"pci.bus_id, inforom.checksum_validation\n0000{bus_id(0)}, {value}\n0000{bus_id(1)}, valid\n"
    assert TWICE.output("nvidia_smi_csv", csv).verdict("gpu-inforom") is not Verdict.PASS


@given(st.data())
def test_no_cut_or_noise_in_the_answer_gives_a_traceback(data: st.DataObject) -> None:
    text = smi_xml([h100(0), volta(1)])
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 400)))
    noise = data.draw(st.text(alphabet="<>/&;:ERR! N/A0123456789\n\x00é", max_size=12))
    box = HEALTHY.output("nvidia_smi_xml", text[:start] + noise + text[end:])
    assert list(judge_machine(machine_view(box.evidence, box.knowledge)))


WORDS = st.sampled_from(
    [*NO_VALUES, "0", "-1", "99999999999999999999", "1e999", "Yes", "No", "Enabled", "P0", "P15", "x16", "nan"]
)


@given(st.dictionaries(st.sampled_from(sorted(h100())), WORDS, max_size=6))
def test_no_combination_of_values_gives_a_traceback(changes: dict[str, str]) -> None:
    texts = h100()
    for path, value in changes.items():
        texts = change(texts, path, value)
    assert list(judge_machine(view_of(BOXES["hopper"], texts)))


@settings(max_examples=30)
@given(st.sampled_from(sorted(HEALTHY.evidence.commands)), st.text(max_size=200), st.integers(-20, 255))
def test_no_output_of_any_command_gives_a_traceback(command: str, stdout: str, rc: int) -> None:
    box = HEALTHY.command(command, CommandResult(rc=rc, stdout=stdout, stderr=stdout))
    assert list(judge_machine(machine_view(box.evidence, box.knowledge)))


@settings(max_examples=30)
@given(st.sampled_from(sorted(HEALTHY.evidence.files)), st.text(max_size=200))
def test_no_content_of_any_file_gives_a_traceback(path: str, text: str) -> None:
    box = HEALTHY.paths({path: text})
    assert list(judge_machine(machine_view(box.evidence, box.knowledge)))


def test_parsers_name_what_they_cannot_read() -> None:
    for text in ("", "No devices were found", "<nvidia_smi_log>", "</nvidia_smi_log><nvidia_smi_log>"):
        with pytest.raises(nvidia.ParseError):
            nvidia.parse_xml(text)
    with pytest.raises(nvidia.ParseError, match=re.escape("more than")):
        nvidia.parse_xml("x" * (nvidia.MAX_BYTES + 1))
    assert replace(HEALTHY) == HEALTHY
