"""config.yaml: every key that OpenPAI v1.5 to v1.8 knew, with its default, and ours."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, SecretStr, ValidationInfo, WithJsonSchema

from pai_install.site import fields as f
from pai_install.site.document import Document
from pai_install.site.scalars import invalid, read_text, read_whole, shown
from pai_install.site.secret import Secret, site_path

SUPPORTED_MINORS = ("1.35", "1.36")


def _read_version(value: object) -> str:
    word = read_text(value).removeprefix("v")
    match = re.fullmatch(r"(\d{1,3}\.\d{1,3})(\.\d{1,3})?", word)
    if match is None:
        raise invalid("version", f"{word[:60]} is not a Kubernetes version", 'write for example "1.36" or "1.36.3"')
    if match[1] not in SUPPORTED_MINORS:
        raise invalid("version", f"Kubernetes {word} is not supported", f"choose {' or '.join(SUPPORTED_MINORS)}")
    return word


def _read_size(value: object) -> str:
    word = read_text(value)
    if not re.fullmatch(r"[1-9][0-9]{0,8}[kmg]?", word):
        raise invalid("size", f"{word[:60]} is not a size that Docker takes", "write for example 100m or 2g")
    return word


def _read_node_prefix(value: object) -> int:
    prefix = read_whole(value)
    if not 16 <= prefix <= 28:
        raise invalid("prefix", f"{prefix} is not a prefix length for one machine's pods", "use 16 to 28")
    return prefix


def _choice(*words: str) -> BeforeValidator:
    def read(value: object) -> str:
        word = read_text(value)
        if word not in words:
            raise invalid("choice", f"{shown(word)} is not one of {', '.join(words)}", "choose one of them")
        return word

    return BeforeValidator(read)


def _site_file(value: object, info: ValidationInfo) -> Path:
    if isinstance(value, Path):
        return value
    word = read_text(value)
    folder = info.context.folder if isinstance(info.context, Document) else Path()
    try:
        return site_path(word, folder)
    except (RuntimeError, ValueError):
        raise invalid("path", f"{shown(word)} is not a path on this box") from None


def _sorted_unique(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))


KubernetesVersion = Annotated[str, BeforeValidator(_read_version)]
LogSize = Annotated[str, BeforeValidator(_read_size)]
NodePrefix = Annotated[int, BeforeValidator(_read_node_prefix)]
SiteFile = Annotated[Path, BeforeValidator(_site_file), WithJsonSchema({"type": "string"})]
Urls = Annotated[tuple[f.Url, ...], AfterValidator(_sorted_unique)]
Servers = Annotated[tuple[f.Server, ...], AfterValidator(_sorted_unique)]
Registries = Annotated[tuple[f.Registry, ...], AfterValidator(_sorted_unique)]
Backend = Annotated[Literal["azure", "filesystem"], _choice("azure", "filesystem")]
FlannelBackend = Annotated[Literal["vxlan", "host-gw"], _choice("vxlan", "host-gw")]
ComponentSource = Annotated[
    Literal["upstream", "mirror", "bundle", "modules"], _choice("upstream", "mirror", "bundle", "modules")
]
DockerPackages = Annotated[Literal["distribution", "docker-ce"], _choice("distribution", "docker-ce")]
Runtime = Annotated[Literal["runc", "nvidia"], _choice("runc", "nvidia")]


class Settings(f.FileModel):
    """config.yaml as values. Fields have the names of the keys; a default is OpenPAI's where it had one."""

    model_config = ConfigDict(populate_by_name=True)

    # how machines are reached
    user: f.UserName
    password: Secret | None = None
    ssh_key_file_path: SiteFile | None = None

    # the cluster (ours)
    kubernetes_version: KubernetesVersion = "1.36"
    pod_cidr: f.Cidr = "10.200.0.0/13"
    service_cidr: f.Cidr = "10.192.0.0/13"
    pod_cidr_node_prefix: NodePrefix = 25
    flannel_backend: FlannelBackend = "vxlan"
    kubelet_config: f.FreeMapping = Field(default_factory=dict)
    kubelet_custom_flags: dict[f.FlagName, f.Word] = Field(default_factory=dict)
    hosts_entries: f.Boolean = True
    ntp_servers: Servers = ()
    http_proxy: f.Url | None = None
    https_proxy: f.Url | None = None
    no_proxy: f.Word | None = None

    # where third-party programs come from (ours)
    component_source: ComponentSource = "upstream"
    component_mirror_url: f.Url | None = None
    component_bundle: SiteFile | None = None
    component_store_port: f.Port = 5080

    # Docker and containerd
    docker_packages: DockerPackages = "distribution"
    container_default_runtime: Runtime | None = None
    docker_data_root: f.AbsolutePath = "/mnt/docker"
    docker_log_max_size: LogSize = "100m"
    docker_log_max_file: f.Count = 5
    docker_live_restore: f.Boolean = True
    docker_iptables_enabled: f.Boolean | None = None
    docker_config_file_path: f.AbsolutePath | None = None
    openpai_docker_insecure_registries: Registries = ()
    openpai_docker_registry_mirrors: Urls = ()

    # the registry cache
    enable_docker_cache: f.StrictBoolean = False
    docker_cache_storage_backend: Backend = "azure"
    docker_cache_azure_account_name: f.Word | None = None
    docker_cache_azure_account_key: Secret | None = None
    docker_cache_azure_container_name: f.Word = "dockerregistry"
    docker_cache_fs_mount_path: f.AbsolutePath = "/var/lib/registry"
    docker_cache_remote_url: f.Url = "https://registry-1.docker.io"
    docker_cache_htpasswd: Secret | None = None
    docker_cache_registry_htpasswd: Secret | None = None

    # OpenPAI's scheduler and services
    enable_hived_scheduler: f.StrictBoolean = True
    enable_marketplace: f.Boolean = False
    docker_image_tag: f.Word | None = None
    docker_registry_domain: f.Word = "docker.io"
    docker_registry_namespace: f.Word = "openpai"
    docker_registry_username: f.Word | None = None
    docker_registry_password: Secret | None = None
    qos_switch: f.Boolean = Field(default=False, alias="qos-switch")
    host_daemon_port_start: f.Port = 40000
    host_daemon_port_end: f.Port = 65535

    # known to OpenPAI, without effect here; NO_EFFECT says why
    docker_check: f.Boolean = True
    resource_check: f.Boolean = True
    gcr_image_repo: f.Word | None = None
    kube_image_repo: f.Word | None = None
    quay_image_repo: f.Word | None = None
    docker_image_repo: f.Word | None = None
    etcd_image_repo: f.Word | None = None
    pod_infra_image_repo: f.Word | None = None
    kubeadm_download_url: f.Word | None = None
    hyperkube_download_url: f.Word | None = None
    openpai_kube_network_plugin: f.Word | None = None
    openpai_kubespray_extra_var: f.FreeMapping = Field(default_factory=dict)
    openpai_registry: f.Word | None = None
    dev_box_registry: f.Word | None = None
    install_run_time: f.Boolean | None = None
    nvidia_version: f.Word | None = None
    branch_name: f.Word | None = None
    worker_default_docker_runtime: f.Word | None = None
    gpu_type: f.Word | None = None

    @property
    def cache_htpasswd(self) -> SecretStr | None:
        """The base64 of the cache's htpasswd file, under either of OpenPAI's two names for it."""
        return self.docker_cache_htpasswd or self.docker_cache_registry_htpasswd
