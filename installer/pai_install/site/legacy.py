"""Keys of OpenPAI's older formats, and of ours that have no effect any more: what to say about each."""

from __future__ import annotations

_OLD_LAYOUT = (
    "belongs to layouts of OpenPAI before v1.5",
    "pai-install migrate OLD --site NEW turns an old site into a current one",
)

# keys below machine-sku and machine-list, and top-level ones, that v0.x to v1.4 knew: what to say, what to do
LEGACY_LAYOUT_KEYS = dict.fromkeys(
    (
        "gpu", "os", "nodename", "etcdid", "k8s-role", "zkid", "dashboard", "alert-manager", "username",
        "password", "sshport", "keyfile-path", "docker-data", "dataFolder", "default-machine-properties",
        "ssh-secret-name", "watchdog", "node-exporter", "prometheus", "grafana", "pylon", "launcher",
        "hdfsrole", "yarnrole", "zookeeper", "jobhistory",
    ),
    _OLD_LAYOUT,
)  # fmt: skip

# names that OpenPAI's manual gives, but that OpenPAI itself never read
LEGACY_SETTINGS = {
    f"docker_azure_{name}": ("is a slip of OpenPAI's manual", f"write docker_cache_azure_{name}")
    for name in ("account_name", "account_key", "container_name")
}

_IMAGES = "images come from component_source; use component_source: mirror with component_mirror_url"
_SERVICES = "OpenPAI's own services are not deployed"
_PREFLIGHT = "preflight checks replace OpenPAI's"

# settings that are accepted and read, but change nothing here: key -> why
NO_EFFECT = {
    "enable_marketplace": _SERVICES,
    "docker_registry_domain": _SERVICES,
    "docker_registry_namespace": _SERVICES,
    "qos-switch": _SERVICES,
    "docker_check": _PREFLIGHT,
    "resource_check": _PREFLIGHT,
    "docker_config_file_path": "/etc/docker/daemon.json is the one file; what is in it is kept and merged",
    "gcr_image_repo": _IMAGES,
    "kube_image_repo": _IMAGES,
    "quay_image_repo": _IMAGES,
    "docker_image_repo": _IMAGES,
    "etcd_image_repo": _IMAGES,
    "pod_infra_image_repo": _IMAGES,
    "kubeadm_download_url": _IMAGES,
    "hyperkube_download_url": _IMAGES,
    "openpai_kube_network_plugin": "the pod network is flannel; see flannel_backend",
    "openpai_kubespray_extra_var": "kubespray is not used; see the settings in docs/site.md",
    "openpai_registry": _IMAGES,
    "dev_box_registry": _IMAGES,
    "install_run_time": "the container runtime is always installed",
    "nvidia_version": "NVIDIA drivers are the machine's own",
    "branch_name": "OpenPAI's sources are not used",
    "worker_default_docker_runtime": "use container_default_runtime",
    "gpu_type": "the computing-device of the machine type says it",
}
