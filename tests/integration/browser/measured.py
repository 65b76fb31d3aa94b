"""What a node and the GPU meter tell a real Prometheus of one machine, on which a job holds an idle GPU."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from pai_install.console.settings import MonitoringSettings
from pai_install.monitoring.rules import rule_groups
from pai_install.monitoring.scrape import KEPT
from pai_install.site.services.own_monitoring import Monitoring
from tests.integration.alerts.servers import monitoring
from tests.integration.browser.machine import NODE, SPACE
from tests.integration.control_plane import Json
from tests.perf.many_nodes import series

IDLE, IDLE_PERCENT = "idle-job", 4
_MIB = 2**20
_BUSY = 'gpu="1"'
_IDLE = f'gpu="0",namespace="{SPACE}",pod="{IDLE}-worker-0-0"'
# series -> growth in a second
_COUNTERS = {
    'node_cpu_seconds_total{cpu="0",mode="idle"}': 0.75,
    'node_disk_read_bytes_total{device="nvme0"}': 50 * _MIB,
    'node_disk_written_bytes_total{device="nvme0"}': 75 * _MIB,
    'node_network_receive_bytes_total{device="eth0"}': 80 * _MIB,
}
_GAUGES = {
    f'node_uname_info{{nodename="{NODE}",sysname="Linux"}}': 1,
    "node_memory_MemTotal_bytes": 100e9,
    "node_memory_MemFree_bytes": 30e9,
    "node_memory_Buffers_bytes": 10e9,
    "node_memory_Cached_bytes": 15e9,
    f"DCGM_FI_DEV_GPU_UTIL{{{_IDLE}}}": IDLE_PERCENT,
    f"DCGM_FI_DEV_GPU_UTIL{{{_BUSY}}}": 60,
    **{f"DCGM_FI_DEV_FB_USED{{{gpu}}}": used for gpu, used in ((_IDLE, 20_000), (_BUSY, 68_000))},
    **{f"DCGM_FI_DEV_FB_TOTAL{{{gpu}}}": 80_000 for gpu in (_IDLE, _BUSY)},
}
# column of the page Hardware -> percent. The portal takes what the disks write for what the network sends.
HARDWARE = {"cpu": 25, "mem": 45, "gpu": 32, "gpumem": 55, "disk": 15, "eth": 80}
_OWN = {"node": NODE, "instance": NODE, "job": "node"}


class _Exporter(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        now = time.time()
        counters = {series: growth * now for series, growth in _COUNTERS.items()}
        body = "".join(f"{series} {value}\n" for series, value in {**counters, **_GAUGES}.items()).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        """Nothing: it is asked each second."""


def _recorded(now: int) -> str:
    """The counters of the last ten minutes: a rate over five of them needs both ends."""
    own = "".join(f',{name}="{value}"' for name, value in _OWN.items())
    lines = [
        f"{series[:-1]}{own}}} {growth * at} {at}"
        for series, growth in _COUNTERS.items()
        for at in range(now - 600, now)
    ]
    return "\n".join([*lines, "# EOF\n"])


def _config(folder: Path, port: int) -> Json:
    """As on a control plane, but each second."""
    keep = {"source_labels": ["__name__"], "regex": "|".join(KEPT["node"]), "action": "keep"}
    targets = {"targets": [f"127.0.0.1:{port}"], "labels": _OWN}
    return {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(folder / "rules.yml")],
        "scrape_configs": [{"job_name": "node", "static_configs": [targets], "metric_relabel_configs": [keep]}],
    }


@contextmanager
def measured(promtool: Path, alertmanager: Path, folder: Path) -> Iterator[MonitoringSettings]:
    """Monitoring that read the machine and has evaluated its rules."""
    exporter = ThreadingHTTPServer(("127.0.0.1", 0), _Exporter)
    Thread(target=exporter.serve_forever, daemon=True).start()
    # the alerts of the site are of no interest here
    recorded = [
        {**one, "interval": "1s"} for one in rule_groups(Monitoring())["groups"] if one["name"] == "pai-recorded"
    ]
    (folder / "rules.yml").write_text(json.dumps({"groups": recorded}))
    try:
        samples, config = _recorded(int(time.time())), _config(folder, exporter.server_port)
        with monitoring(promtool, alertmanager, folder, samples, config) as found:
            end = time.monotonic() + 60
            while not series(found.prometheus, "pai_node_cpu_busy_ratio and pai_node_gpu_busy_percent"):
                assert time.monotonic() < end, (folder / "prometheus.log").read_text()
                time.sleep(0.5)
            yield found
    finally:
        exporter.shutdown()
        exporter.server_close()
