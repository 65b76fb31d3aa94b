"""A site whose cluster is looked at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pai_install.site import Site, load_site

LAYOUT = """
machine-sku:
  cpu: {mem: 8Gi, cpu: {vcore: 4}}
  gpu: {mem: 8Gi, cpu: {vcore: 4}, computing-device: {type: nvidia.com/gpu, model: A100, count: 8}}
machine-list:
  - {hostname: master, hostip: 10.0.0.1, machine-type: cpu, pai-master: "true"}
  - {hostname: worker1, hostip: 10.0.0.2, machine-type: gpu, pai-worker: "true"}
  - {hostname: worker2, hostip: 10.0.0.3, machine-type: cpu, pai-worker: "true"}
"""


@pytest.fixture
def make_site(tmp_path: Path) -> Callable[..., Site]:
    """Writes layout.yaml and config.yaml, reads them as a site."""

    def make(layout: str = LAYOUT) -> Site:
        (tmp_path / "layout.yaml").write_text(layout)
        (tmp_path / "config.yaml").write_text("user: pai\npassword: planted-secret\n")
        return load_site(tmp_path).site

    return make


@pytest.fixture
def site(make_site: Callable[..., Site]) -> Site:
    """One control plane, a GPU worker, a CPU worker."""
    return make_site()
