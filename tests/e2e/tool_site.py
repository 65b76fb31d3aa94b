"""The cluster with another services-configuration.yaml, whole cores, devices, and an image with tools, for one file."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .conftest import EXISTING, KEPT, LOST, Cluster, equip
from .test_jobs import devices

IMAGE = "pai.test/tools:1"
WORKERS = (EXISTING, LOST)
HERE = Path(__file__).parent


def tool_image() -> str:
    """A command that makes the image on a machine."""
    written = (
        f"echo {base64.b64encode((HERE / name).read_bytes()).decode()} | base64 -d >$d/{name}"
        for name in ("python_image.py", "tool_image.py")
    )
    return f"d=$(mktemp -d) && {' && '.join(written)} && python3 $d/tool_image.py {IMAGE} && rm -r $d"


@contextmanager
def tool_site(cluster: Cluster, configuration: str) -> Iterator[None]:
    """Applies the site with this services-configuration.yaml, and takes everything back at the end of the block."""
    services, layout = cluster.site / "services-configuration.yaml", cluster.site / "layout.yaml"
    before, machines = services.read_text() if services.exists() else None, layout.read_text()
    services.write_text(configuration)
    # the jobs ask for whole cores, and the machines have more than the layout says
    layout.write_text(machines.replace("vcore: 1", "vcore: 2"))
    try:
        equip(cluster.site)
        report = cluster.converge()
        assert report["ok"], report["stderr"]
        for worker in WORKERS:
            cluster.on(worker, tool_image())
            devices(cluster, worker, "add", "8")
        yield
    finally:
        for worker in WORKERS:
            devices(cluster, worker, "remove")
        layout.write_text(machines)
        if not KEPT:
            for worker in WORKERS:
                cluster.on(worker, f"ctr --namespace=k8s.io images rm {IMAGE}")
            services.unlink() if before is None else services.write_text(before)
            report = cluster.converge()
    assert KEPT or report["ok"], report["stderr"]
