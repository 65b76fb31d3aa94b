"""Recorded outputs of real machines: what each must lead to is in recordings.json. Skipped without them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pai_install.checks.evidence import NotObservedError
from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.health.evidence import fields
from pai_install.health.evidence.document import CommandResult, HealthEvidence
from pai_install.health.evidence.fields import Field
from pai_install.health.evidence.parse import nvidia
from pai_install.health.judge.catalogues import load_catalogue, load_limits
from pai_install.health.judge.evaluate import Knowledge, evaluate, machine_view
from pai_install.health.judge.expectation import Expectation
from pai_install.health.judge.gpu_view import GpuView
from pai_install.health.judge.rules import GPU_CHECKS
from pai_install.health.judge.view import MachineView

HERE = Path(__file__).parent
RECORDINGS = HERE.parents[3] / "shared" / "data" / "gpu-recordings"
EXPECTED: dict[str, list[str]] = json.loads((HERE / "recordings.json").read_text())
KNOWLEDGE = Knowledge(load_limits(), load_catalogue(), {"node": Expectation(device="nvidia.com/gpu")})
NOW = 1_740_330_000.0  # half an hour after the kernel log among the recordings
pytestmark = pytest.mark.skipif(not RECORDINGS.is_dir(), reason="the recordings are not here")
XML = [name for name in EXPECTED if name.endswith(".xml")]
HEALTHY = [name for name in XML if "healthy" in name or name.startswith(("gb200x4", "b200x8", "a10g"))]
SECTION = re.compile(
    r"^#{20,}\n# (\w+) :: ([^\n]*)\n# \$ [^\n]*\n#{20,}\n(.*?)(?=^#{20,}\n# |\Z)", re.MULTILINE | re.DOTALL
)


def read(name: str) -> str:
    return (RECORDINGS / name).read_text(encoding="utf-8", errors="replace")


def sections(name: str) -> dict[str, str]:
    """State and name -> output, of a file that holds many commands."""
    return {f"{state} {title}": text for state, title, text in SECTION.findall(read(name))}


def ok(text: str) -> CommandResult:
    return CommandResult(rc=0, stdout=text, duration_s=1.0)


def commands(name: str) -> dict[str, CommandResult]:
    """The recording as the command of the collector that it came from."""
    if name.endswith(".xml"):
        return {"nvidia_smi_xml": ok(read(name))}
    refused = CommandResult(rc=255, stderr="not recorded")
    if name.endswith("-capture.txt"):
        found = sections(name)
        return {
            "nvidia_smi_xml": refused,
            "nvidia_smi_text": ok(found["load query (-q)"]),
            "nvidia_smi_nvlink": ok(found["capabilities nvlink -s"]),
            "nvidia_smi_csv": ok(next(text for title, text in found.items() if title.startswith("load query-gpu"))),
        }
    kind = {
        "a100-40gb-x8-driver460-query.txt": "nvidia_smi_text",
        "retired-pages-x8-driver535-edited-bad.txt": "nvidia_smi_text",
        "v100x8-driver460-inforom-corrupted.txt": "nvidia_smi_table",
        "v100x7-nvlink-inactive.txt": "nvidia_smi_nvlink",
        "a100-80gb-x8-nvlink-ok.txt": "nvidia_smi_nvlink",
        "a100-80gb-x8-lspci.txt": "lspci",
        "ps-nvidia-smi-d-state.txt": "ps",
        "dmesg-xid-119-gsp-timeout.log": "dmesg",
    }.get(name)
    text = processes(read(name)) if kind == "ps" else read(name)
    return {"nvidia_smi_xml": refused, **({kind: ok(text)} if kind else {})}


def processes(text: str) -> str:
    """`STAT PID PPID COMMAND` of the recording in the columns that the collector asks for."""
    rows = [line.split(None, 3) for line in text.splitlines()]
    return "".join(f"{row[1]} {row[0]} {row[2]} 4000 - {row[3].rsplit('/')[-1].split()[0]}\n" for row in rows)


def files(name: str) -> dict[str, str]:
    if name == "infiniband-sysfs-h100-node.txt":
        return {
            f"/sys/class/infiniband/{path}": text
            for path, _, text in (line.partition(":") for line in read(name).splitlines())
        }
    return {"/var/log/fabricmanager.log": read(name)} if name.startswith("fabricmanager") else {}


def evidence(name: str) -> HealthEvidence:
    facts: dict[str, object] = {"files_infiniband": {}, "gpu_processes": {}}
    return HealthEvidence("node", NOW, "boot", commands=commands(name), files=files(name), facts=facts)


def loud(name: str) -> list[Finding]:
    """FAIL and WARN of what the recording shows: not that other evidence was not recorded with it."""
    quiet = {"host-evidence", "driver-status"}
    found = evaluate([evidence(name)], KNOWLEDGE)[0].findings
    return [item for item in found if item.verdict in (Verdict.FAIL, Verdict.WARN) and item.id not in quiet]


def lines(findings: list[Finding]) -> list[str]:
    return sorted(f"{item.verdict.value} {item.id} {item.device or '-'} {item.action.value}" for item in findings)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_recording_leads_to_what_is_written_down(name: str) -> None:
    assert lines(loud(name)) == EXPECTED[name]


def test_every_recording_is_covered() -> None:
    present = {path.name for path in RECORDINGS.iterdir()} - {"README.md", "docker-inspect-gpu-task.json"}
    assert present == set(EXPECTED)


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_stays_without_fail(name: str) -> None:
    assert [item for item in loud(name) if item.verdict is Verdict.FAIL] == []


# One change to a healthy recording; GPU 1 of eight is the changed one.
CHANGES = [
    ("<gpu_recovery_action>None<", "<gpu_recovery_action>GPU Reset<", "gpu-recovery-action", "reset_gpu"),
    ("<dram_uncorrectable>0<", "<dram_uncorrectable>1<", "gpu-ecc-uncorrected", "reset_gpu"),
    ("<sram_threshold_exceeded>No<", "<sram_threshold_exceeded>Yes<", "gpu-ecc-sram-threshold", "rma"),
    ("<remapped_row_failure>No<", "<remapped_row_failure>Yes<", "gpu-remap-failed", "rma"),
    ("histogram_none>0 bank(s)<", "histogram_none>1 bank(s)<", "gpu-remap-banks", "rma"),
    ("slowdown>Not Active<", "slowdown>Active<", "gpu-throttle", "drain"),
    ("<state>Completed<", "<state>In Progress<", "gpu-fabric", "drain"),
    ("<gpu_temp_tlimit>56 C<", "<gpu_temp_tlimit>-1 C<", "gpu-temperature", "drain"),
    ("<total>81559 MiB<", "<total>40000 MiB<", "gpu-memory-size", "reset_gpu"),
    ("<used>0 MiB<", "<used>9000 MiB<", "gpu-memory-leak", "reboot"),
    ("<instant_power_draw>", "<instant_power_draw>Unknown Error ", "gpu-power", "reboot"),
    ("<pending_mig>Disabled<", "<pending_mig>Enabled<", "gpu-mig", "reset_gpu"),
]


@pytest.mark.parametrize(("old", "new", "check", "action"), CHANGES)
def test_one_change_to_a_healthy_recording_fails_for_its_reason(old: str, new: str, check: str, action: str) -> None:
    text = read("h100x8-driver580-healthy.xml")
    assert old in text
    changed = HealthEvidence("node", NOW, "boot", commands={"nvidia_smi_xml": ok(text.replace(old, new, 1))})
    failed = [item for item in evaluate([changed], KNOWLEDGE)[0].findings if item.verdict is Verdict.FAIL]
    assert (check, action) in {(item.id, item.action.value) for item in failed}
    assert {item.id for item in failed} <= {check, "gpu-readable"}
    assert len({item.device for item in failed}) == 1


NO_VALUES = (None, "N/A", "ERR!", "Unknown Error", "GPU is lost")
# the name of a field, as a record has it -> the field
FIELDS = {field.name: field for field in vars(fields).values() if isinstance(field, Field)}
SCANNERS = {"gpu-lost", "gpu-readable"}


def judged(gpu: nvidia.Gpu, machine: MachineView, major: int) -> Iterator[tuple[str, Verdict, set[str]]]:
    """(check, verdict, paths it read) of one GPU."""
    view = GpuView(gpu, major, None)
    for check in GPU_CHECKS:
        view.record.begin()
        machine.record.begin()
        try:
            verdict = view.record.settle(check.judge(view, machine)).verdict
        except NotObservedError as gap:
            verdict = gap.verdict
        read = (path for name in view.record.names for path in FIELDS[name].paths)
        yield check.id, verdict, {path for path in read if path in gpu.texts}


@pytest.mark.parametrize("name", XML)
def test_no_value_of_a_recording_can_be_taken_away_and_still_pass(name: str) -> None:
    machine = machine_view(evidence(name), KNOWLEDGE)
    report = nvidia.parse_xml(read(name))
    major = int(report.driver_version.split(".")[0])
    gpu = report.gpus[0]
    readers: dict[str, set[str]] = {}
    for check, verdict, read_paths in judged(gpu, machine, major):
        for path in read_paths if verdict is Verdict.PASS and check not in SCANNERS else ():
            readers.setdefault(path, set()).add(check)
    for path, checks in readers.items():
        for value in NO_VALUES:
            texts = {key: text for key, text in gpu.texts.items() if key != path}
            if value is not None:
                texts[path] = value
            after = {check: verdict for check, verdict, _ in judged(nvidia.Gpu(gpu.bus_id, texts), machine, major)}
            passed = {check for check in checks if after[check] is Verdict.PASS}
            assert passed == set(), f"{path} = {value}"
