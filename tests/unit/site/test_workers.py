"""What workers have for jobs: devices, or a part of the cores."""

from __future__ import annotations

from pathlib import Path

from pai_install.site.load import load_site
from pai_install.site.workers import workers_of
from tests.unit.site.rules.scheduling.sites import ABSENT
from tests.unit.site.sites import write_site


def test_workers_by_sku(tmp_path: Path) -> None:
    found = workers_of(load_site(write_site(tmp_path, layout=ABSENT)).site)
    assert list(found) == ["a100", "t4", "epyc"]
    a100, epyc = found["a100"], found["epyc"]
    assert (a100.present, a100.absent, a100.names) == (("g1", "g2"), ("g3",), ("g1", "g2", "g3"))
    assert (a100.resource, a100.unit, a100.units) == ("nvidia.com/gpu", "devices", 8)
    assert (epyc.resource, epyc.unit, epyc.units, epyc.cpu_millis) == ("", "cores", 36, 1000)
    assert epyc.units * epyc.memory_bytes == 320 * 2**30 * 90 // 100
