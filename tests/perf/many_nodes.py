"""The metrics of many nodes from one web server, and Prometheus with the files of a site that reads them."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import Process
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from pai_install.monitoring.rules import rule_groups
from pai_install.monitoring.scrape import Scraping, configuration
from pai_install.site import load_site
from pai_install.site.services.own_monitoring import Monitoring
from tests.unit.site.sites import write_site

ROOT = Path(__file__).parents[2]
GPUS, CPUS, PODS = 8, 16, 40
_GPU = (
    *("GPU_UTIL", "FB_USED", "FB_FREE", "FB_TOTAL", "GPU_TEMP", "MEMORY_TEMP", "POWER_USAGE", "SM_CLOCK", "MEM_CLOCK"),
    *("PSTATE", "CLOCK_THROTTLE_REASONS", "ECC_SBE_VOL_TOTAL", "ECC_DBE_VOL_TOTAL", "PCIE_LINK_GEN"),
    *("PCIE_LINK_WIDTH", "PCIE_MAX_LINK_WIDTH", "CORRECTABLE_REMAPPED_ROWS", "UNCORRECTABLE_REMAPPED_ROWS"),
)
_DISK = ("read_bytes", "written_bytes", "reads_completed", "writes_completed", "io_time_seconds", "read_time_seconds")
_NETWORK = tuple(f"{way}_{what}" for way in ("receive", "transmit") for what in ("bytes", "packets", "errs", "drop"))
_INFINIBAND = (
    *("port_data_received_bytes", "port_data_transmitted_bytes", "symbol_error", "link_downed"),
    *("port_packets_received", "port_packets_transmitted", "link_error_recovery", "port_receive_errors"),
)
_CONTAINER = (
    *("cpu_usage_seconds_total", "memory_working_set_bytes", "network_receive_bytes_total"),
    *("network_transmit_bytes_total", "fs_reads_bytes_total", "fs_writes_bytes_total", "oom_events_total"),
)


def machine(turn: int) -> str:
    """What a node exporter and the GPU meter serve; counters grow with the turn."""
    lines = ["node_memory_MemTotal_bytes 2e12", f"node_memory_MemAvailable_bytes {1e12 - turn * 1e9}"]
    lines += [f"node_boot_time_seconds {time.time() - 1e6}", "node_timex_sync_status 1", f"node_load1 {turn % 9}"]
    for cpu in range(CPUS):
        for number, mode in enumerate(("idle", "iowait", "user", "system", "nice", "irq", "softirq", "steal")):
            lines.append(f'node_cpu_seconds_total{{cpu="{cpu}",mode="{mode}"}} {turn * 30 / (number + 2)}')
    for disk in range(9):
        lines += [f'node_disk_{name}_total{{device="nvme{disk}"}} {turn * 997}' for name in _DISK]
        lines += [
            f'node_filesystem_{name}_bytes{{device="nvme{disk}",fstype="ext4",mountpoint="/d{disk}"}} {size - turn}'
            for name, size in (("size", 1e12), ("avail", 6e11))
        ]
    for port in range(10):
        lines += [f'node_network_{name}_total{{device="eth{port}"}} {turn * 1009}' for name in _NETWORK]
    for port in range(8):
        lines += [f'node_infiniband_{it}_total{{device="mlx{port}",port="1"}} {turn * 1013}' for it in _INFINIBAND]
    for gpu in range(GPUS):
        lines += [f'DCGM_FI_DEV_{it}{{gpu="{gpu}",UUID="GPU-{gpu}"}} {(gpu * 7 + turn) % 80}' for it in _GPU]
    lines += [f"pai_gpu_expected {GPUS}", f"pai_gpu_count {GPUS}", f"pai_gpu_measured_timestamp_seconds {time.time()}"]
    return "\n".join(lines) + "\n"


def containers(turn: int) -> str:
    """What a kubelet serves of the pods of its node."""
    lines = [
        f'container_{name}{{namespace="team",pod="job-{pod}",container="main"}} {turn * 101 + pod}'
        for pod in range(PODS)
        for name in _CONTAINER
    ]
    return "\n".join(lines) + "\n"


def state(nodes: int) -> str:
    """What kube-state-metrics tells of the nodes."""
    lines = []
    for node in range(nodes):
        name = f'node="n{node}"'
        lines += [f'kube_node_status_condition{{{name},condition="Ready",status="true"}} 1']
        lines += [
            f'kube_node_status_condition{{{name},condition="Ready",status="{it}"}} 0' for it in ("false", "unknown")
        ]
        lines += [f"kube_node_spec_unschedulable{{{name}}} 0"]
        lines += [f'kube_node_status_allocatable{{{name},resource="nvidia_com_gpu"}} {GPUS}']
        pod = f'namespace="team",pod="job-{node}",uid="{node}",{name}'
        lines += [f'kube_pod_container_resource_requests{{{pod},container="main",resource="nvidia_com_gpu"}} {GPUS}']
        lines += [f'kube_pod_status_phase{{{pod},phase="Running"}} 1', f"kube_pod_info{{{pod}}} 1"]
    return "\n".join(lines) + "\n"


def _serve(port: int, nodes: int) -> None:
    pages = {"state": state(nodes).encode()}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            turn = int(time.time() / 30)
            kind = self.path.strip("/").split("/")[0]
            if kind == "million":
                body = "".join(f'pai_many{{number="{number}"}} 1\n' for number in range(1_000_000)).encode()
            elif kind == "state":
                body = pages["state"]
            else:
                made = pages.get(f"{kind}{turn}")
                body = made or (machine if kind == "node" else containers)(turn).encode()
                pages[f"{kind}{turn}"] = body
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


@contextmanager
def served(port: int, nodes: int) -> Iterator[None]:
    """Serves until the end of the block, in a process of its own."""
    process = Process(target=_serve, args=(port, nodes), daemon=True)
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


def write_files(folder: Path, port: int, nodes: int, *, million: bool = False, scrape_s: int = 30) -> None:
    """The configuration and the rules of a site, with paths of the web server instead of the targets."""
    site = load_site(
        write_site(folder / "site", config="user: pai\npassword: example\n", services="monitoring: true\n")
    ).site
    made = configuration(site, Scraping(scrape_s, 9100), "")
    jobs = {job["job_name"]: job for job in made["scrape_configs"]}
    names = [f"n{number}" for number in range(nodes)]
    kept = [
        _job(jobs["node"], port, {name: f"/node/{name}" for name in names}),
        _job(jobs["kubelet-pods"], port, {name: f"/pods/{name}" for name in names}),
        {**_job(jobs["kube-state"], port, {"": "/state"}), "honor_labels": True},
    ]
    if million:
        kept.append({**_job(jobs["node"], port, {"bad": "/million"}), "job_name": "million"})
    made = {**made, "scrape_configs": kept, "rule_files": [str(folder / "rules.yml")], "alerting": {}}
    (folder / "prometheus.yml").write_text(json.dumps(made))
    (folder / "rules.yml").write_text(json.dumps(rule_groups(Monitoring())))


def _job(job: Mapping[str, Any], port: int, paths: Mapping[str, str]) -> dict[str, Any]:
    left_out = ("kubernetes_sd_configs", "static_configs", "tls_config", "authorization", "scheme", "metrics_path")
    rules = [{"target_label": "job", "replacement": job["job_name"]}]
    targets = [
        {"targets": [f"127.0.0.1:{port}"], "labels": {"__metrics_path__": path, **({"node": node} if node else {})}}
        for node, path in paths.items()
    ]
    rest = {key: value for key, value in job.items() if key not in left_out}
    # all have one address: the node is the instance
    rules.append({"source_labels": ["node"], "target_label": "instance"})
    return {**rest, "relabel_configs": rules, "static_configs": targets}


def store_arguments(folder: Path, port: int, disk: str) -> list[str]:
    """The arguments of Prometheus in the add-on, for this folder, port, and size."""
    made = yaml.safe_load_all((ROOT / "addons/monitoring/tests/plain.expected.yml").read_text())
    (pod,) = (it["spec"]["template"]["spec"] for it in made if it["kind"] == "Deployment")
    (found,) = (it["args"] for it in pod["containers"] if it["name"] == "prometheus")
    own = {
        "--config.file": f"{folder}/prometheus.yml",
        "--web.listen-address": f"127.0.0.1:{port}",
        "--storage.tsdb.path": f"{folder}/data",
        "--storage.tsdb.retention.size": disk,
    }
    pairs = [word.partition("=") for word in found]
    return [f"{name}={own.get(name, value)}" if equals else name for name, equals, value in pairs]


def asked(url: str, path: str) -> Any:
    """The data of an answer of Prometheus."""
    with urllib.request.urlopen(f"{url}/api/v1/{path}", timeout=60) as answer:  # noqa: S310 - on loopback
        return json.load(answer)["data"]


def series(url: str, expression: str) -> Sequence[Mapping[str, Any]]:
    """The series of an expression now, none while Prometheus starts."""
    try:
        found: list[dict[str, Any]] = asked(url, f"query?query={quote(expression)}")["result"]
    except OSError:
        return []
    return found
