"""A cluster on machines of the lab that lives as long as a measurement."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.layouts import worker_entry
from tests.perf.process import ROOT, cost_of, pai_install

SUBNET = "172.30.86"
NEWCOMER = "lab-worker3"
ENTRY = worker_entry(NEWCOMER, f"{SUBNET}.14", "lab-master")


@contextmanager
def own_lab() -> Iterator[Path]:
    """The folder of a site of three machines with a cluster on them; afterwards nothing of them is left.

    Components that are not in the cache are fetched first, so that the installation is measured and not the building.
    Raises OSError without root, CalledProcessError when a step fails.
    """
    if os.geteuid() != 0:
        raise OSError("the lab needs root")
    with tempfile.TemporaryDirectory(prefix="pai-bench-") as folder:
        site = Path(folder) / "lab"
        shutil.copytree(ROOT / "layouts" / "lab", site, ignore=shutil.ignore_patterns(".pai"))
        layout = site / "layout.yaml"
        layout.write_text(layout.read_text().replace("172.30.77.", f"{SUBNET}."))
        cost_of(pai_install("components", "fetch", "--site", str(site), "--yes"))
        try:
            cost_of(pai_install("lab", "up", "--site", str(site), "--yes"))
            cost_of(pai_install("apply", "--site", str(site), "--yes", "--format", "json"))
            yield site
        finally:
            cost_of(pai_install("lab", "down", "--site", str(site), "--yes"))


def add_machine(site: Path) -> str:
    """Writes one more worker into the layout and starts it; its name. Raises CalledProcessError when that fails."""
    layout = site / "layout.yaml"
    layout.write_text(layout.read_text().rstrip() + ENTRY)
    cost_of(pai_install("lab", "up", "--site", str(site), "--yes"))
    return NEWCOMER
