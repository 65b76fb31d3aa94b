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
    """Settings of the whole cluster: config.yaml. A default is OpenPAI's where it had one."""

    model_config = ConfigDict(populate_by_name=True, use_attribute_docstrings=True)

    # how machines are reached
    user: f.UserName
    """The account on every machine; it may use sudo."""
    password: Secret | None = None
    """Password of `user`, also for sudo. Needed where there is no ssh_key_file_path."""
    ssh_key_file_path: SiteFile | None = None
    """Private key of `user`, on the dev box. A relative path starts at the site's folder."""

    # the cluster (ours)
    kubernetes_version: KubernetesVersion = "1.36"
    """A minor version ("1.36") or an exact one ("1.36.3")."""
    pod_cidr: f.Cidr = "10.200.0.0/13"
    """The network of all pods."""
    service_cidr: f.Cidr = "10.192.0.0/13"
    """The network of services."""
    pod_cidr_node_prefix: NodePrefix = 25
    """How much of pod_cidr one machine gets: /25 is room for about 110 pods."""
    flannel_backend: FlannelBackend = "vxlan"
    """How pods reach other machines: vxlan (everywhere) or host-gw (all machines in one network, faster)."""
    kubelet_config: f.FreeMapping = Field(default_factory=dict)
    """Merged into every KubeletConfiguration."""
    kubelet_custom_flags: dict[f.FlagName, f.Word] = Field(default_factory=dict)
    """Flags of the kubelet, without dashes; prefer kubelet_config."""
    hosts_entries: f.Boolean = True
    """Write the machines' names into /etc/hosts."""
    ntp_servers: Servers = ()
    """Where the control planes get the time; they serve it to the other machines."""
    http_proxy: f.Url | None = None
    """Proxy of the machines for http."""
    https_proxy: f.Url | None = None
    """Proxy of the machines for https."""
    no_proxy: f.Word | None = None
    """What is reached without proxy; the machines and the cluster's networks are added."""

    # where third-party programs come from (ours)
    component_source: ComponentSource = "upstream"
    """Where third-party programs come from: upstream, mirror, bundle or modules."""
    component_mirror_url: f.Url | None = None
    """With component_source: mirror, the address that stands for the upstream ones."""
    component_bundle: SiteFile | None = None
    """With component_source: bundle, the offline file."""
    component_store_port: f.Port = 5080
    """Port of the file server on the first control plane."""

    # Docker and containerd
    docker_packages: DockerPackages = "distribution"
    """Docker Engine from the distribution or from docker-ce."""
    container_default_runtime: Runtime | None = None
    """Runtime of containers that name none: runc or nvidia."""
    nvidia_device_plugin: f.Boolean = True
    """Offer the GPUs of NVIDIA SKUs to Kubernetes; false where the GPU operator or a plugin of your own does."""
    docker_data_root: f.AbsolutePath = "/mnt/docker"
    """Where Docker keeps images and containers."""
    docker_log_max_size: LogSize = "100m"
    """Size of a container's log file before a new one is begun."""
    docker_log_max_file: f.Count = 5
    """How many log files a container keeps."""
    docker_live_restore: f.Boolean = True
    """Containers keep running while Docker is restarted."""
    docker_iptables_enabled: f.Boolean | None = None
    """Whether Docker manages iptables; not given: as Docker does."""
    docker_config_file_path: f.AbsolutePath | None = None
    """Without effect; /etc/docker/daemon.json is merged."""
    openpai_docker_insecure_registries: Registries = ()
    """Registries that may be reached without TLS."""
    openpai_docker_registry_mirrors: Urls = ()
    """Mirrors of Docker Hub."""

    # the registry cache
    enable_docker_cache: f.StrictBoolean = False
    """Run a pull-through cache of Docker Hub in the cluster."""
    docker_cache_storage_backend: Backend = "azure"
    """Where the cache keeps its content: azure or filesystem."""
    docker_cache_azure_account_name: f.Word | None = None
    """Azure storage account of the cache."""
    docker_cache_azure_account_key: Secret | None = None
    """Key of that storage account."""
    docker_cache_azure_container_name: f.Word = "dockerregistry"
    """Container in that storage account."""
    docker_cache_fs_mount_path: f.AbsolutePath = "/var/lib/registry"
    """Folder of the cache on the filesystem backend."""
    docker_cache_remote_url: f.Url = "https://registry-1.docker.io"
    """The registry that is cached."""
    docker_cache_htpasswd: Secret | None = None
    """Base64 of an htpasswd file (bcrypt): who may use the cache."""
    docker_cache_registry_htpasswd: Secret | None = None
    """Another name of docker_cache_htpasswd: the one that OpenPAI really read."""

    # OpenPAI's scheduler and services
    enable_hived_scheduler: f.StrictBoolean = True
    """Schedule with HiveD; for OpenPAI sites."""
    enable_marketplace: f.Boolean = False
    """Without effect: OpenPAI's services are not deployed."""
    docker_image_tag: f.Word | None = None
    """Tag of OpenPAI's service images; marks a site as OpenPAI's."""
    docker_registry_domain: f.Word = "docker.io"
    """Without effect: OpenPAI's services are not deployed."""
    docker_registry_namespace: f.Word = "openpai"
    """Without effect: OpenPAI's services are not deployed."""
    docker_registry_username: f.Word | None = None
    """Account at the registry docker_registry_domain."""
    docker_registry_password: Secret | None = None
    """Password of docker_registry_username."""
    qos_switch: f.Boolean = Field(default=False, alias="qos-switch")
    """Without effect: OpenPAI's services are not deployed."""
    host_daemon_port_start: f.Port = 40000
    """First local port of outgoing connections on workers."""
    host_daemon_port_end: f.Port = 65535
    """Last local port of outgoing connections on workers."""

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
