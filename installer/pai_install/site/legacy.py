"""Keys of OpenPAI's older formats, with a message for each."""

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
    f"docker_azure_{name}": ("is a typing error in OpenPAI's manual", f"write docker_cache_azure_{name}")
    for name in ("account_name", "account_key", "container_name")
}
