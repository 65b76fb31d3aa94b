"""Sites for tests: written into a folder, small or large."""

from __future__ import annotations

from pathlib import Path

LAYOUT = """\
machine-sku:
  master:
    mem: 60Gi
    cpu:
      vcore: 24
  gpu:
    computing-device:
      type: nvidia.com/gpu
      model: K80
      count: 4
    mem: 220Gi
    cpu:
      vcore: 24
machine-list:
  - hostname: m1
    hostip: 10.0.0.1
    machine-type: master
    pai-master: "true"
  - hostname: w1
    hostip: 10.0.0.2
    machine-type: gpu
    pai-worker: "true"
"""
CONFIG = "user: admin\nssh_key_file_path: key\n"


def write_site(
    directory: Path,
    *,
    layout: str | bytes = LAYOUT,
    config: str | bytes = CONFIG,
    services: str | bytes | None = None,
) -> Path:
    """Writes the files of a site and returns its folder."""
    directory.mkdir(parents=True, exist_ok=True)
    files = {"layout.yaml": layout, "config.yaml": config, "services-configuration.yaml": services}
    for name, content in files.items():
        if content is not None:
            (directory / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return directory


def large_layout(machines: int) -> str:
    """A layout with one control plane and `machines` - 1 workers, each with an address of its own."""
    entries = [
        f"  - hostname: worker{number}\n    hostip: 10.{number // 62500}.{number // 250 % 250}.{number % 250 + 1}\n"
        f'    machine-type: gpu\n    pai-worker: "true"\n'
        for number in range(1, machines)
    ]
    return LAYOUT[: LAYOUT.index("  - hostname: w1")] + "".join(entries)
