"""How long the verdicts over a thousand machines take, and how big they get; run by `make bench`."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

MACHINES = 1000
GPUS = 8
# What makes a real answer of nvidia-smi long: the table of supported clocks.
_CLOCKS = (
    "<supported_clocks>" + "<supported_graphics_clock>1980 MHz</supported_graphics_clock>" * 220 + "</supported_clocks>"
)


def write_evidence(path: Path, machines: int = MACHINES, gpus: int = GPUS) -> None:
    """A file with the evidence of so many machines, every hundredth with a fault, as long as real ones."""
    from tests.unit.health.machines import h100, healthy, smi_xml  # noqa: PLC0415

    texts = [{**h100(index)} for index in range(gpus)]
    good = _long(smi_xml(texts))
    texts[3] = {**texts[3], "remapped_rows/remapped_row_failure": "Yes"}
    bad = _long(smi_xml(texts))
    base = healthy(gpus).evidence
    document: dict[str, Any] = {
        "schema_version": 1,
        "collected_at": base.collected_at,
        "boot_id": base.boot_id,
        "uptime_s": base.uptime_s,
        "commands": {name: asdict(result) for name, result in base.commands.items()},
        "files": dict(base.files),
        "facts": {name: {"ok": True, "value": value} for name, value in base.facts.items()},
    }
    with path.open("w") as out:
        for number in range(machines):
            document["commands"]["nvidia_smi_xml"]["stdout"] = bad if number % 100 == 0 else good
            out.write(json.dumps({"machine": f"gpu-{number:04}", "evidence": document}) + "\n")


def _long(xml: str) -> str:
    return xml.replace("</gpu>", _CLOCKS + "</gpu>")


def measure() -> dict[str, float]:
    """Seconds and MiB of judging, in a process of its own, and of the page over the result."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "evidence.jsonl"
        write_evidence(path)
        root = Path(__file__).parents[2]
        environment = {**os.environ, "PYTHONPATH": f"{root / 'installer'}{os.pathsep}{root}"}
        code = f"from tests.perf.health_bench import judge; judge({str(path)!r})"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root, env=environment
        )
        found: dict[str, float] = json.loads(done.stdout)
        found["health_evidence_mib"] = path.stat().st_size / 2**20
    return {**found, **collector_cost()}


def judge(path: str) -> None:
    """Prints what it cost to judge the evidence in `path`, as JSON."""
    from pai_install.health.checkup import HealthRequest, HealthRun  # noqa: PLC0415
    from pai_install.health.html import html  # noqa: PLC0415

    start, processor = time.monotonic(), time.process_time()
    report = HealthRun(None, None, None).run(HealthRequest(source=Path(path)))
    judged, used = time.monotonic(), time.process_time() - processor
    page = html(report, title="bench")
    drawn = time.monotonic()
    result = {
        "health_judge_seconds": round(judged - start, 2),
        "health_judge_cpu_seconds": round(used, 2),
        "health_judge_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "health_findings": float(sum(len(machine.findings) for machine in report.machines)),
        "health_page_seconds": round(drawn - judged, 2),
        "health_page_mib": len(page) / 2**20,
    }
    print(json.dumps(result))  # noqa: T201 - the answer of a process of its own


def collector_cost() -> dict[str, float]:
    """CPU and wall time of the collector on the controller host."""
    from pai_install.health.collect import collector  # noqa: PLC0415

    done = subprocess.run([sys.executable, collector.__file__], capture_output=True, text=True, check=True)
    document = json.loads(done.stdout)
    return {"health_collector_cpu_seconds": document["cpu_s"], "health_collector_seconds": document["duration_s"]}


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))  # noqa: T201 - a program of its own
