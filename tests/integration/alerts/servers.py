"""A Prometheus with recorded samples, and an Alertmanager without receivers."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pai_install.console.settings import MonitoringSettings
from tests.integration.control_plane import Json, running
from tests.ports import free_ports


@contextmanager
def monitoring(
    promtool: Path, alertmanager: Path, folder: Path, samples: str, config: Json
) -> Iterator[MonitoringSettings]:
    """Both programs. samples: in OpenMetrics' form, up to now. config: of Prometheus."""
    (folder / "metrics").write_text(samples)
    words: list[str | Path] = [promtool, "tsdb", "create-blocks-from", "openmetrics"]
    subprocess.run([*words, folder / "metrics", folder / "data"], check=True, capture_output=True)
    (folder / "prometheus.yml").write_text(json.dumps(config))
    (folder / "alertmanager.yml").write_text("{route: {receiver: none}, receivers: [{name: none}]}")
    manager, server = (f"127.0.0.1:{port}" for port in free_ports(2))
    with ExitStack() as stack:
        words = [promtool.with_name("prometheus"), f"--config.file={folder}/prometheus.yml"]
        words += [f"--storage.tsdb.path={folder}/data", f"--web.listen-address={server}"]
        stack.enter_context(running(words, folder / "prometheus.log"))
        words = [alertmanager, f"--config.file={folder}/alertmanager.yml", f"--storage.path={folder}/alerts"]
        words += [f"--web.listen-address={manager}", "--cluster.listen-address="]
        stack.enter_context(running(words, folder / "alertmanager.log"))
        until_ready(f"http://{server}", f"http://{manager}")
        yield MonitoringSettings(prometheus=f"http://{server}", alertmanager=f"http://{manager}")


def until_ready(*urls: str) -> None:
    end = time.monotonic() + 60
    for url in urls:
        while True:
            try:
                with urllib.request.urlopen(f"{url}/-/ready", timeout=5):  # noqa: S310 - ours
                    break
            except OSError:
                assert time.monotonic() < end
                time.sleep(0.2)
