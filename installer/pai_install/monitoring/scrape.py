"""What Prometheus reads from where, and which names it keeps. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pai_install.monitoring.rules import own_rule_groups
from pai_install.ports import (
    ALERTMANAGER_PORT,
    API_SERVER_PORT,
    CONSOLE_METRICS_PORT,
    CONTROLLER_MANAGER_PORT,
    ETCD_METRICS_PORT,
    KUBE_STATE_METRICS_PORT,
    KUBELET_PORT,
    PROMETHEUS_PORT,
    SCHEDULER_PORT,
)
from pai_install.registry.compile import EXPORTER_NAME, registries_of
from pai_install.registry.model import CACHE_HOST
from pai_install.site import Machine, Site
from pai_install.site.console import has_console
from pai_install.site.schedulers import scheduler_of

TLS = "/etc/prometheus-tls"
# token of an account that reads metrics alone: root of a worker receives it on the port of the kubelet
_ACCOUNT = "/etc/metrics-reader"
_LOOPBACK = "127.0.0.1"
# a target that serves more than this is refused as a whole: it harms only itself
SAMPLE_LIMIT = 50_000
_BODY_LIMIT = "32MB"
_LABEL_LIMIT = 40
# parallel requests to a remote store: each holds samples in memory
_MOST_SHARDS = 10

CONSOLE = "console"
# the scheduler, its namespace, and the port of its metrics
HIVED, HIVED_NAMESPACE, HIVED_PORT_NAME = "hived", "pai-hived", "open"
KUEUE, KUEUE_NAMESPACE, KUEUE_PORT_NAME = "kueue", "pai-kueue", "metrics"

# name of a job -> what is kept of its metrics; names without a match are dropped
KEPT: Mapping[str, Sequence[str]] = {
    "node": (
        "node_(arp_entries|boot_time_seconds|load[0-9]+|memory_(MemTotal|MemFree|MemAvailable|Buffers|Cached|Slab)_bytes)",
        "node_cpu_seconds_total",
        "node_pressure_.+",
        "node_filesystem_(size|avail|files|files_free|readonly)(_bytes)?",
        "node_disk_(read|written)_bytes_total|node_disk_(reads|writes)_completed_total|node_disk_io_time_seconds_total",
        "node_disk_(read|write)_time_seconds_total",
        "node_network_(receive|transmit)_(bytes|packets|errs|drop)_total|node_network_(up|speed_bytes)",
        "node_infiniband_.+",
        "node_edac_.+",
        "node_timex_(offset_seconds|sync_status|maxerror_seconds)",
        "node_bonding_.+|node_md_.+",
        "node_nf_conntrack_.+",
        "node_systemd_unit_state",
        "node_vmstat_(oom_kill|pgmajfault)",
        "node_textfile_.+|node_scrape_collector_success|node_uname_info",
        "DCGM_FI_.+|pai_.+",
    ),
    "kubelet": (
        "kubelet_volume_stats_(available|capacity)_bytes|kubelet_volume_stats_inodes(_free)?",
        "kubelet_running_pods|kubelet_running_containers|kubelet_certificate_manager_client_expiration_renew_errors",
        "kubelet_pleg_relist_duration_seconds_(sum|count)|kubernetes_build_info",
    ),
    "kubelet-pods": (
        "container_(cpu_usage_seconds_total|memory_working_set_bytes|network_receive_bytes_total)",
        "container_(network_transmit_bytes_total|fs_reads_bytes_total|fs_writes_bytes_total|oom_events_total)",
    ),
    "kube-state": (),  # its own allow list says which
    "apiserver": (
        "apiserver_request_total|apiserver_current_inflight_requests|apiserver_audit_(event|error)_total",
        "apiserver_request_duration_seconds_(bucket|sum|count)",
        "apiserver_client_certificate_expiration_seconds_(bucket|count)|kubernetes_build_info|process_start_time_seconds",
    ),
    "etcd": (
        "etcd_server_(has_leader|leader_changes_seen_total|proposals_failed_total|quota_backend_bytes|is_leader)",
        "etcd_mvcc_db_total_size_(in|in_use_in)_bytes",
        "etcd_network_(peer_round_trip_time_seconds_bucket|(known|active)_peers|disconnected_peers_total)",
        "etcd_disk_(wal_fsync|backend_commit)_duration_seconds_(bucket|sum|count)",
    ),
    "scheduler": ("scheduler_(pending_pods|schedule_attempts_total|pod_scheduling_attempts_(sum|count))",),
    "controller-manager": ("workqueue_depth|kubernetes_build_info|process_start_time_seconds",),
    "prometheus": (
        "prometheus_tsdb_(head_series|storage_blocks_bytes|wal_storage_size_bytes|compactions_failed_total)",
        "prometheus_rule_(evaluation_failures_total|group_last_duration_seconds)|process_resident_memory_bytes",
        "prometheus_config_last_reload_successful",
        "prometheus_notifications_(errors|dropped|sent)_total|prometheus_target_scrapes_exceeded_.+",
        "prometheus_remote_storage_(samples_failed_total|samples_dropped_total|highest_timestamp_in_seconds)",
        "prometheus_remote_storage_queue_highest_sent_timestamp_seconds",
    ),
    "alertmanager": (
        "alertmanager_(notifications_total|notifications_failed_total|alerts|silences)|process_resident_memory_bytes",
    ),
    CONSOLE: ("pai_console_.+",),
    "registry": ("registry_.+",),
    HIVED: ("hived_bridge_.+",),
    KUEUE: (
        "kueue_(pending|reserving_active|admitted_active)_workloads|kueue_cluster_queue_status",
        "kueue_admission_wait_time_seconds_(bucket|sum|count)",
        "kueue_(admitted|quota_reserved|preempted|evicted)_workloads_total",
    ),
}

_NODE_RELABELS: Sequence[Mapping[str, Any]] = (
    # of each CPU two series instead of eight
    {
        "source_labels": ["__name__", "mode"],
        "regex": "node_cpu_seconds_total;(?:user|nice|system|irq|softirq|steal)",
        "action": "drop",
    },
    # verdicts of health on all machines lie on one of them
    {
        "source_labels": ["__name__", "machine"],
        "regex": "pai_health_.+;(.+)",
        "target_label": "node",
    },
)


@dataclass(frozen=True, slots=True)
class Scraping:
    """How Prometheus runs. scrape_s: seconds between two readings. exporter_port: of the machines.

    outside: it is not in the cluster. It reads the machines of the site, and has its credentials beside its file.
    """

    scrape_s: int
    exporter_port: int
    evaluate_s: int = 15
    outside: bool = False

    @property
    def tls(self) -> str:
        """Folder of the client certificate, the authorities, and the password of the cache."""
        return "tls" if self.outside else TLS

    @property
    def account(self) -> str:
        """Folder of the token and the authority of the API server."""
        return "cluster" if self.outside else _ACCOUNT


def configuration(site: Site, scraping: Scraping, cache_login: str) -> dict[str, Any]:
    """Returns the configuration of Prometheus without its rules. cache_login: user at the registry cache, or ""."""
    own = ["/etc/prometheus/customized.yml"] if own_rule_groups(site) else []
    stores = _remote_stores(site)
    return {
        "global": {"scrape_interval": f"{scraping.scrape_s}s", "evaluation_interval": f"{scraping.evaluate_s}s"},
        "rule_files": ["/etc/prometheus/rules.yml", *own],
        **({"remote_write": stores} if stores else {}),
        "alerting": {"alertmanagers": [{"static_configs": [_targets(f"{_LOOPBACK}:{ALERTMANAGER_PORT}")]}]},
        "scrape_configs": [
            *_on_machines(site, scraping),
            *_on_loopback(),
            *_console(site),
            *_schedulers(site),
            *_registries(site, scraping, cache_login),
        ],
    }


def _remote_stores(site: Site) -> list[dict[str, Any]]:
    wanted = site.services.monitoring
    found: list[dict[str, Any]] = []
    for number, store in enumerate(wanted.remote_write if wanted else ()):
        token = {"authorization": {"credentials_file": f"{TLS}/{remote_token(number)}"}} if store.token else {}
        found.append({"name": store.name, "url": store.url, **token, "queue_config": {"max_shards": _MOST_SHARDS}})
    return found


def remote_token(number: int) -> str:
    """Returns the name of the file with the token of a remote store."""
    return f"remote-{number}-token"


def outside(site: Site, scraping: Scraping, cache_login: str) -> dict[str, Any]:
    """Returns the configuration of a Prometheus outside of the cluster. What answers on loopback alone is left out."""
    return {
        "global": {"scrape_interval": f"{scraping.scrape_s}s", "evaluation_interval": f"{scraping.evaluate_s}s"},
        "rule_files": ["rules.yml", *(["customized.yml"] if own_rule_groups(site) else [])],
        "scrape_configs": [*_on_machines(site, scraping), *_registries(site, scraping, cache_login)],
    }


def _on_machines(site: Site, scraping: Scraping) -> Iterator[dict[str, Any]]:
    token = {"authorization": {"credentials_file": f"{scraping.account}/token"}}
    tls = exporter_tls(scraping.tls)
    exporters = _on_nodes(site, scraping, scraping.exporter_port)
    # Kubernetes does not know a machine that only serves storage.
    others = [_machine(it, scraping.exporter_port) for it in site.present_machines if not it.node]
    exporters["static_configs"] = [*exporters.get("static_configs", ()), *others]
    yield _job("node", **exporters, scheme="https", tls_config=tls)
    kubelet: dict[str, Any] = {**_on_nodes(site, scraping, KUBELET_PORT), "scheme": "https", **token}
    # kubelets sign their serving certificates themselves
    kubelet["tls_config"] = {"insecure_skip_verify": True}
    yield _job("kubelet", **kubelet)
    yield _job("kubelet-pods", **kubelet, metrics_path="/metrics/cadvisor")
    servers = [_targets(f"{it.hostip}:{API_SERVER_PORT}", node=it.hostname) for it in site.control_planes]
    cluster = {"ca_file": f"{scraping.account}/ca.crt"}
    yield _job("apiserver", scheme="https", **token, tls_config=cluster, static_configs=servers)


def _on_loopback() -> Iterator[dict[str, Any]]:
    # It tells of objects of other nodes and pods, so its labels count and not its own address.
    yield _static("kube-state", f"{_LOOPBACK}:{KUBE_STATE_METRICS_PORT}", honor_labels=True)
    # the next three answer on the loopback of their machine alone (CIS 1.3.7, 1.4.2)
    yield _static("etcd", f"{_LOOPBACK}:{ETCD_METRICS_PORT}")
    token = {"authorization": {"credentials_file": f"{_ACCOUNT}/token"}}
    own = {"scheme": "https", **token, "tls_config": {"insecure_skip_verify": True}}
    yield _static("scheduler", f"{_LOOPBACK}:{SCHEDULER_PORT}", **own)
    yield _static("controller-manager", f"{_LOOPBACK}:{CONTROLLER_MANAGER_PORT}", **own)
    yield _static("prometheus", f"{_LOOPBACK}:{PROMETHEUS_PORT}")
    yield _static("alertmanager", f"{_LOOPBACK}:{ALERTMANAGER_PORT}")


def _console(site: Site) -> Iterator[dict[str, Any]]:
    if has_console(site):
        yield _static(CONSOLE, f"{_LOOPBACK}:{CONSOLE_METRICS_PORT}")


def _schedulers(site: Site) -> Iterator[dict[str, Any]]:
    """Without the label `node`: a dead node explains its own alerts, and not that no job starts."""
    scheduler = scheduler_of(site)
    if scheduler == HIVED:
        yield _job(HIVED, **_pods(HIVED_NAMESPACE, HIVED_PORT_NAME))
    if scheduler == KUEUE:
        # it signs its certificate itself, and asks the API server who may read
        tls = {"scheme": "https", "tls_config": {"insecure_skip_verify": True}}
        token = {"authorization": {"credentials_file": f"{_ACCOUNT}/token"}}
        yield _job(KUEUE, **_pods(KUEUE_NAMESPACE, KUEUE_PORT_NAME), **tls, **token)


def _pods(namespace: str, port: str) -> dict[str, Any]:
    """The pods of a namespace with a port of this name."""
    named = {"source_labels": ["__meta_kubernetes_pod_container_port_name"], "regex": port, "action": "keep"}
    pod = {"source_labels": ["__meta_kubernetes_pod_name"], "target_label": "instance"}
    found = [{"role": "pod", "namespaces": {"names": [namespace]}}]
    return {"kubernetes_sd_configs": found, "relabel_configs": [named, pod]}


def _registries(site: Site, scraping: Scraping, login: str) -> Iterator[dict[str, Any]]:
    """Yields one job per upstream of the cache, because each has a path of its own."""
    cache = registries_of(site).cache
    if cache is None:
        return
    address = f"{site.control_planes[0].hostip}:{cache.port}"
    password = {"username": login, "password_file": f"{scraping.tls}/cache-password"}
    for upstream in cache.upstreams:
        found = _job(
            "registry",
            scheme="https",
            metrics_path=f"/metrics/{upstream.name}",
            tls_config={"ca_file": f"{scraping.tls}/ca.crt", "server_name": CACHE_HOST},
            static_configs=[_targets(address, registry=upstream.name)],
            **({"basic_auth": password} if login else {}),
        )
        yield {**found, "job_name": f"registry-{upstream.name}"}


def _job(name: str, **keys: Any) -> dict[str, Any]:  # noqa: ANN401 - keys of Prometheus
    kept = "|".join(KEPT[name])
    # The API server and cAdvisor have thousands of names, and most of them no alert or page reads.
    keep = [{"source_labels": ["__name__"], "regex": kept, "action": "keep"}] if kept else []
    own = list(_NODE_RELABELS) if name == "node" else []
    # A program that exports a label per request must not fill the disk of all metrics.
    limits = {"sample_limit": SAMPLE_LIMIT, "label_limit": _LABEL_LIMIT, "body_size_limit": _BODY_LIMIT}
    relabel = [*keys.pop("relabel_configs", ()), {"target_label": "job", "replacement": name}]
    return {
        "job_name": name,
        **limits,
        **keys,
        "relabel_configs": relabel,
        "metric_relabel_configs": [*keep, *own],
    }


def _static(name: str, address: str, **keys: Any) -> dict[str, Any]:  # noqa: ANN401 - keys of Prometheus
    return _job(name, static_configs=[_targets(address)], **keys)


def _targets(address: str, **labels: str) -> dict[str, Any]:
    return {"targets": [address], "labels": labels} if labels else {"targets": [address]}


def _on_nodes(site: Site, scraping: Scraping, port: int) -> dict[str, Any]:
    """Every node of the cluster: a node outlives its machine, so that a dead machine is missed."""
    if scraping.outside:
        return {"static_configs": [_machine(it, port) for it in site.nodes]}
    return {
        "kubernetes_sd_configs": [{"role": "node"}],
        "relabel_configs": [
            {
                "source_labels": ["__meta_kubernetes_node_address_InternalIP"],
                "regex": "(.+)",
                "target_label": "__address__",
                "replacement": f"$1:{port}",
            },
            *(
                {"source_labels": ["__meta_kubernetes_node_name"], "regex": "(.+)", "target_label": label}
                for label in ("node", "instance")
            ),
        ],
    }


def _machine(machine: Machine, port: int) -> dict[str, Any]:
    """A machine with the labels of a node."""
    return _targets(f"{machine.hostip}:{port}", node=machine.hostname, instance=machine.hostname)


def exporter_tls(folder: str) -> dict[str, Any]:
    """Returns how node exporters are asked, with files of that folder."""
    return {
        "ca_file": f"{folder}/ca.crt",
        "cert_file": f"{folder}/tls.crt",
        "key_file": f"{folder}/tls.key",
        "server_name": EXPORTER_NAME,
    }
