"""Metrics of GPUs: names, holders, and what has no sample because nobody knows it."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pai_install.agents.gpu_use.__main__ import Meter
from pai_install.agents.gpu_use.metrics import Reading, exposition
from pai_install.agents.gpu_use.smi import FIELDS, Gpu, Smi, parse, parse_remapped
from pai_install.agents.gpu_use.xids import parse as parse_xids
from pai_install.agents.gpu_use.xids import read
from pai_install.lab.gpu import StandInGpu as Shown
from pai_install.lab.gpu import metrics_table, product_of, rows_table
from tests.unit.agents.gpu_use.kubelet import answering
from tests.unit.agents.gpu_use.test_meter import HELD, Server, meter, server

__all__ = ["meter", "server"]

LINE = (
    "0, GPU-1, 97, 00000000:3B:00.0, 100, 300, 400, 96, [N/A], 310.55, 1410, 1593, P0, "
    "0x0000000000000048, 2, 0, 4, 8, 16"
)
LOG = (
    "2026-11-20T10:00:00+00:00 gpu-01 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n"
    "2026-11-20T10:01:00+0000 gpu-01 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n"
    "-- No entries --\n2026-99-20T10:00:00+00:00 gpu-01 kernel: NVRM: Xid (PCI:0000:3b:00): 31, pid=1\n"
)


def samples(text: str) -> dict[str, float]:
    """Series -> value."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


def test_a_gpu_under_the_names_of_dcgm() -> None:
    reading = Reading(1000.0, parse(LINE), {"GPU-1": [("vision", "train-0")]}, expected=8)
    found = samples(exposition(reading))
    labels = 'gpu="0",UUID="GPU-1",namespace="vision",pod="train-0"'
    assert found[f"DCGM_FI_DEV_GPU_UTIL{{{labels}}}"] == 97
    assert found[f"DCGM_FI_DEV_GPU_TEMP{{{labels}}}"] == 96
    assert found[f"DCGM_FI_DEV_POWER_USAGE{{{labels}}}"] == 310.55
    assert found[f"DCGM_FI_DEV_PSTATE{{{labels}}}"] == 0
    assert found[f'pai_gpu_slowdown{{{labels},reason="hw_thermal"}}'] == 1
    assert found[f'pai_gpu_slowdown{{{labels},reason="hw_power_brake"}}'] == 0
    assert (found["pai_gpu_count"], found["pai_gpu_expected"]) == (1, 8)


@pytest.mark.parametrize("word", ["[N/A]", "N/A", "[Not Supported]", "[Unknown Error]", "GPU is lost", "", "-3", "nan"])
def test_an_absent_value_has_no_sample(word: str) -> None:
    words = LINE.split(", ")
    text = exposition(Reading(1000.0, parse(", ".join([*words[:2], word, words[3], *[word] * (len(FIELDS) - 1)]))))
    assert "DCGM" not in text
    assert "slowdown" not in text
    assert samples(text)["pai_gpu_count"] == 1


def test_a_driver_that_does_not_answer_shows_no_gpus() -> None:
    found = samples(exposition(Reading(1000.0, {}, hanging_s=61, expected=8)))
    assert found == {"pai_gpu_expected": 8, "pai_nvidia_smi_running_seconds": 61}


def test_a_gpu_that_several_pods_share_names_none() -> None:
    pods = [("vision", "a"), ("vision", "b")]
    assert "pod=" not in exposition(Reading(1.0, parse(LINE), {"GPU-1": pods}))


def test_names_of_pods_are_escaped() -> None:
    text = exposition(Reading(1.0, {"GPU-1": Gpu("0", 1.0)}, {"GPU-1": [("a", 'b"} 1\nc')]}))
    assert text.count("\n") == len([line for line in text.split("\n") if re.match(r"#|[A-Za-z_]+(\{.*\})? \S+$", line)])


def test_xids_of_the_kernel_log() -> None:
    at = datetime(2026, 11, 20, 10, 1, tzinfo=UTC).timestamp()
    assert parse_xids(LOG) == {("0000:3b:00.0", "79"): at}
    found = samples(exposition(Reading(1.0, parse(LINE), xids=parse_xids(LOG))))
    assert found['pai_gpu_xid_timestamp_seconds{gpu="0",pci_bus_id="0000:3b:00.0",xid="79"}'] == at


def test_without_a_journal_there_are_no_xids(tmp_path: Path) -> None:
    assert read((str(tmp_path / "none"),)) is None
    assert read(("/bin/sh", "-c", "echo garbage")) == {}


def test_remapped_rows() -> None:
    gpus = [Shown(0, product_of("A100"), "GPU-1")]
    assert parse_remapped(rows_table(gpus)) == {
        "GPU-1": {"correctable": 0, "uncorrectable": 0, "pending": 0, "failure": 0}
    }
    assert "GPU-1, 0, " not in metrics_table(gpus)
    rows = {"GPU-1": {"pending": 1.0}}
    assert (
        samples(exposition(Reading(1.0, parse(LINE), remapped=rows)))['pai_gpu_row_remap_pending{gpu="0",UUID="GPU-1"}']
        == 1
    )


def test_an_older_driver_answers_the_short_query(tmp_path: Path) -> None:
    driver = tmp_path / "nvidia-smi"
    driver.write_text('#!/bin/sh\ncase "$1" in *pstate*) exit 2;; esac\necho "0, GPU-1, 5"\n')
    driver.chmod(0o755)
    smi = Smi([str(driver)], full=True)
    assert smi.query() == {"GPU-1": Gpu("0", 5.0)}
    assert smi.query() == {"GPU-1": Gpu("0", 5.0)}


def test_the_meter_writes_its_file(server: Server, meter: Meter, tmp_path: Path) -> None:
    meter.metrics, meter.expected = tmp_path / "gpu.prom", 2
    with answering(meter.socket, *HELD):
        meter.sample()
    found = samples(meter.metrics.read_text())
    assert found['DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-2",namespace="vision",pod="train-0"}'] == 3
    assert meter.metrics.stat().st_mode & 0o777 == 0o644


def test_without_a_kubelet_gpus_are_still_measured(server: Server, meter: Meter, tmp_path: Path) -> None:
    meter.metrics = tmp_path / "gpu.prom"
    meter.sample()
    assert samples(meter.metrics.read_text())['DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-2"}'] == 3
