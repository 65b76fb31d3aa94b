"""config.yaml: every key that OpenPAI v1.5 to v1.8 knew, with its default, and ours."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, SecretStr, ValidationInfo, WithJsonSchema

from pai_install.documents.document import Document
from pai_install.documents.scalars import invalid, read_text, read_whole, shown
from pai_install.site import fields as f
from pai_install.site.certificate import CertificateFile
from pai_install.site.field_metadata import NotYet, WithoutEffect, changes, fixed, live, restarts, without_effect
from pai_install.site.nvidia_driver import Driver
from pai_install.site.secret import Secret, site_path

# host and port, path of lower case, tag, digest: as containerd takes it
_IMAGE = re.compile(
    r"([\w.-]+(:\d{1,5})?/)?[a-z0-9]+([._/-]+[a-z0-9]+)*(:\w[\w.-]{0,127})?(@sha256:[0-9a-f]{64})?", re.ASCII
)
_MAX_IMAGE = 512
SUPPORTED_MINORS = ("1.35", "1.36")


def _read_version(value: object) -> str:
    # The tags of Kubernetes begin with v, and its packages' versions do not. Both are taken.
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


def _read_image(value: object) -> str:
    word = read_text(value)
    if len(word) > _MAX_IMAGE or not _IMAGE.fullmatch(word):
        raise invalid(
            "image", f"{shown(word)} is not the name of an image", "write for example docker.io/team/train:1.2"
        )
    return word


def _read_schedule(value: object) -> str:
    word = read_text(value)
    if not re.fullmatch(r"[A-Za-z0-9*:/,.~ -]{1,80}", word):
        raise invalid(
            "schedule", f"{shown(word)} is no time for systemd", 'write for example daily, or "*-*-* 03:00:00"'
        )
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
        path = site_path(word, folder)
    except (RuntimeError, ValueError):
        raise invalid("path", f"{shown(word)} is not a path on the controller host") from None
    if _is_special(path):
        # ssh reads /dev/zero until the memory of the controller host is full
        raise invalid("path", f"{shown(word)} is a device, a pipe, or a socket")
    return path


def _is_special(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _sorted_unique(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))


KubeletFlags = dict[f.FlagName, f.FlagValue]
KubernetesVersion = Annotated[str, BeforeValidator(_read_version)]
LogSize = Annotated[str, BeforeValidator(_read_size)]
NodePrefix = Annotated[int, BeforeValidator(_read_node_prefix)]
Schedule = Annotated[str, BeforeValidator(_read_schedule)]
SiteFile = Annotated[Path, BeforeValidator(_site_file), WithJsonSchema({"type": "string"})]
Image = Annotated[str, BeforeValidator(_read_image), WithJsonSchema({"type": "string"})]
Urls = Annotated[tuple[f.Url, ...], AfterValidator(_sorted_unique)]
Servers = Annotated[tuple[f.Server, ...], AfterValidator(_sorted_unique)]
Registries = Annotated[tuple[f.Registry, ...], AfterValidator(_sorted_unique)]
Images = Annotated[tuple[Image, ...], AfterValidator(_sorted_unique)]
Backend = Annotated[Literal["azure", "filesystem"], _choice("azure", "filesystem")]
FlannelBackend = Annotated[Literal["vxlan", "host-gw"], _choice("vxlan", "host-gw")]
ComponentSource = Annotated[
    Literal["upstream", "mirror", "bundle", "modules"], _choice("upstream", "mirror", "bundle", "modules")
]
DockerPackages = Annotated[Literal["distribution", "docker-ce"], _choice("distribution", "docker-ce")]
Runtime = Annotated[Literal["runc", "nvidia"], _choice("runc", "nvidia")]

# where containerd keeps images and containers unless it is told otherwise
CONTAINERD_ROOT = "/var/lib/containerd"

# what a change of a setting does
_DOCKER = restarts("docker.service")
_RUNTIMES = restarts("containerd.service", "docker.service")
_DRIVER = live("another version is loaded at the next reboot")
_GPUS = live("only new containers")
_LOGS = restarts("docker.service", note="only new containers")
_REGISTRIES = live("Docker reloads, and containerd reads them at the next pull")
_DATA_ROOT = restarts("docker.service", note="refused while containers run. The content of the old folder stays")
_CONTAINERD_ROOT = restarts("containerd.service", note="refused on nodes and while containers run")
_CACHE_ON = live("no restart of Docker or containerd")
_CACHE = live("only the cache restarts")
_CACHE_FOLDER = live("only the cache restarts. The content of the old folder stays")
_CACHE_LOGINS = live("the cache reads them without a restart")
_REGISTRY_LOGIN = live("the next pull uses it")
_KERNEL = live("a removed parameter keeps its value until a reboot")
_STORE_PORT = restarts("pai-component-store.service")
_KUBELET_CONFIG = restarts("kubelet.service")
_VERSION = fixed("`pai-install upgrade` raises it by one minor version at a time. Downgrades are not possible")
_NETWORK = fixed("machines and services contain it. Create a new cluster")
_BACKEND = fixed("flannel reads it when a machine joins. Create a new cluster")
_HOSTS = fixed("kubelets use a name in /etc/hosts. Create a new cluster")

# what has no effect, and why
_IMAGES = WithoutEffect("images come from component_source. Use component_source: mirror with component_mirror_url")
_SERVICES = WithoutEffect("OpenPAI's own services are not deployed")
_PREFLIGHT = WithoutEffect("preflight checks replace OpenPAI's")
_FLANNEL = WithoutEffect("the pod network is flannel, see flannel_backend")
_KUBESPRAY = WithoutEffect("kubespray is not used, see the settings in docs/site.md")
_DAEMON_JSON = WithoutEffect("pai-install merges its settings into /etc/docker/daemon.json")

# what this version does not set up
_IPTABLES = NotYet("docker_iptables_enabled is left alone: Docker keeps its own setting")
_HIVED = NotYet(
    "OpenPAI's own services are not set up; HiveD is where services-configuration.yaml says what it divides",
    when=lambda settings: settings.docker_image_tag is not None and settings.enable_hived_scheduler,
)


class BackupSchedule(f.FileModel):
    """When snapshots of etcd are taken, and how many stay on each control plane."""

    schedule: Annotated[Schedule, live()] = "daily"
    """As OnCalendar of systemd takes it: daily, hourly, "*-*-* 03:00:00", "Mon *-*-* 02:30:00"."""
    keep: Annotated[f.Count, live()] = 7
    """How many stay; the oldest go."""


class Settings(f.FileModel):
    """Settings of the whole cluster: config.yaml. A default is OpenPAI's where it had one."""

    model_config = ConfigDict(populate_by_name=True)

    # how machines are reached
    user: Annotated[f.UserName, live()]
    """Account on every machine, with sudo."""
    password: Annotated[Secret | None, live()] = None
    """Password of `user`, also for sudo. Required without ssh_key_file_path."""
    ssh_key_file_path: Annotated[SiteFile | None, live()] = None
    """Private key of `user`, on the controller host. A relative path starts at the site's folder."""

    # the cluster (ours)
    kubernetes_version: Annotated[KubernetesVersion, _VERSION] = "1.36"
    """A minor version ("1.36") or an exact one ("1.36.3")."""
    pod_cidr: Annotated[f.Cidr, _NETWORK] = "10.200.0.0/13"
    """The network of all pods."""
    service_cidr: Annotated[f.Cidr, _NETWORK] = "10.192.0.0/13"
    """The network of services."""
    pod_cidr_node_prefix: Annotated[NodePrefix, _NETWORK] = 25
    """Prefix length of each node's part of pod_cidr. /25 has room for about 110 pods."""
    flannel_backend: Annotated[FlannelBackend, _BACKEND] = "vxlan"
    """Pod network between nodes: vxlan (any network) or host-gw (faster, all nodes in one network)."""
    group_isolation: Annotated[f.Boolean, live()] = True
    """Isolate pods of different groups from each other, and from internal ports of nodes."""
    kubelet_config: Annotated[f.FreeMapping, _KUBELET_CONFIG] = Field(default_factory=dict)
    """Merged into every KubeletConfiguration."""
    kubelet_custom_flags: Annotated[dict[f.FlagName, f.FlagValue], restarts("kubelet.service")] = Field(
        default_factory=dict
    )
    """Flags of the kubelet, without dashes. Prefer kubelet_config."""
    hosts_entries: Annotated[f.Boolean, _HOSTS] = True
    """Write the machines' names into /etc/hosts."""
    kernel_parameters: Annotated[dict[f.KernelParameter, f.Word], _KERNEL] = Field(default_factory=dict)
    """Kernel parameters of all machines, such as {net.core.rmem_max: 67108864}. Unknown ones are skipped."""
    etcd_backup: Annotated[BackupSchedule | None, live()] = None
    """Take snapshots of etcd on every control plane: {schedule: daily, keep: 7}. `backup` needs no setting."""
    ntp_servers: Annotated[Servers, restarts("chrony.service")] = ()
    """Time servers of the control-plane nodes, which serve the time to the other machines."""
    http_proxy: Annotated[f.Url | None, _RUNTIMES] = None
    """Proxy for http of containerd and Docker. Not used for apt."""
    https_proxy: Annotated[f.Url | None, _RUNTIMES] = None
    """Proxy for https of containerd and Docker. Not used for apt."""
    no_proxy: Annotated[f.NoProxy | None, _RUNTIMES] = None
    """Hosts without proxy, in addition to the machines and networks of the cluster."""

    # where third-party programs come from (ours)
    component_source: Annotated[ComponentSource, live()] = "upstream"
    """Source of third-party programs: upstream, mirror, bundle, or modules."""
    component_mirror_url: Annotated[f.PlainUrl | None, live()] = None
    """Address of the mirror, with component_source: mirror."""
    component_mirror_username: Annotated[f.Word | None, live()] = None
    """Account of the controller host at the mirror, for files and images."""
    component_mirror_password: Annotated[Secret | None, live()] = None
    """Password or token of component_mirror_username."""
    component_mirror_ca_file: Annotated[CertificateFile | None, live()] = None
    """PEM file on the controller host with additional authorities of the mirror's certificate."""
    component_bundle: Annotated[SiteFile | None, live()] = None
    """Offline file, with component_source: bundle."""
    component_images: Annotated[dict[f.Word, SiteFile], live()] = Field(default_factory=dict)
    """Files of `docker save` that replace images of the catalogue, such as {hivedscheduler: hived.tar}."""
    component_store_port: Annotated[f.Port, _STORE_PORT] = 5080
    """Port of the file server on the first control plane."""

    # NVIDIA's driver (ours)
    nvidia_driver: Annotated[Driver, _DRIVER] = "existing"
    """NVIDIA driver: existing (you install it), or {branch: 580, modules: open} for the newest of that branch."""

    # Docker and containerd
    docker_packages: Annotated[DockerPackages, _DOCKER] = "distribution"
    """Docker Engine from the distribution or from docker-ce."""
    container_default_runtime: Annotated[Runtime | None, _RUNTIMES] = None
    """Default runtime of containers: runc or nvidia."""
    gpu_visible_to_all_containers: Annotated[f.Boolean, _GPUS] = False
    """Give GPUs to containers with NVIDIA_VISIBLE_DEVICES. false: only through the device plugin."""
    nvidia_device_plugin: Annotated[f.Boolean, live()] = True
    """Install the NVIDIA device plugin. false if the GPU operator or your own plugin is used."""
    csi_drivers: Annotated[f.Boolean, live()] = True
    """Install the CSI drivers for SMB and Azure storages of the site. false if you run your own."""
    metrics_server: Annotated[f.Boolean, live()] = True
    """Install metrics-server, for `kubectl top` and autoscaling by CPU and memory. false if you run your own."""
    prepulled_images: Annotated[Images, live()] = ()
    """Public images that workers pull and keep, such as [docker.io/pytorch/pytorch:2.4.0]."""
    docker_data_root: Annotated[f.DataRoot, _DATA_ROOT] = "/mnt/docker"
    """Folder of Docker's images and containers. Pods use containerd_data_root."""
    containerd_data_root: Annotated[f.ContainerdRoot | None, _CONTAINERD_ROOT] = None
    """Folder of containerd's images and containers. [default: the existing one, or /var/lib/containerd]"""
    docker_log_max_size: Annotated[LogSize, _LOGS] = "100m"
    """Size of a container's log file before its rotation."""
    docker_log_max_file: Annotated[f.Count, _LOGS] = 5
    """Number of log files per container."""
    docker_live_restore: Annotated[f.Boolean, _DOCKER] = True
    """Keep containers running during a restart of Docker."""
    docker_iptables_enabled: Annotated[f.Boolean | None, _IPTABLES] = None
    """No effect. pai-install does not change Docker's iptables setting."""
    docker_config_file_path: Annotated[f.AbsolutePath | None, _DAEMON_JSON] = None
    openpai_docker_insecure_registries: Annotated[Registries, _REGISTRIES] = ()
    """Registries without TLS."""
    openpai_docker_registry_mirrors: Annotated[Urls, _REGISTRIES] = ()
    """Mirrors of Docker Hub."""

    # the registry cache
    enable_docker_cache: Annotated[f.StrictBoolean, _CACHE_ON] = False
    """Run a pull-through cache of Docker Hub on the first control plane. Section `registry` adds more registries."""
    docker_cache_storage_backend: Annotated[Backend, _CACHE] = "azure"
    """Storage of the cache: azure or filesystem."""
    docker_cache_azure_account_name: Annotated[f.Word | None, _CACHE] = None
    """Azure storage account of the cache."""
    docker_cache_azure_account_key: Annotated[Secret | None, _CACHE] = None
    """Key of docker_cache_azure_account_name."""
    docker_cache_azure_container_name: Annotated[f.Word, _CACHE] = "dockerregistry"
    """Container in the storage account."""
    docker_cache_fs_mount_path: Annotated[f.CacheFolder, _CACHE_FOLDER] = "/var/lib/registry"
    """Folder of the cache on the first control plane, with the filesystem backend."""
    docker_cache_remote_url: Annotated[f.PlainUrl, _CACHE] = "https://registry-1.docker.io"
    """Upstream of docker.io for the cache."""
    docker_cache_htpasswd: Annotated[Secret | None, _CACHE_LOGINS] = None
    """Users of the cache, as base64 of an htpasswd file (bcrypt)."""
    docker_cache_registry_htpasswd: Annotated[Secret | None, _CACHE_LOGINS] = None
    """Alias of docker_cache_htpasswd, which OpenPAI used."""

    # OpenPAI's scheduler and services
    enable_hived_scheduler: Annotated[f.StrictBoolean, _HIVED] = True
    """Use HiveD as scheduler, for sites of OpenPAI."""
    enable_marketplace: Annotated[f.Boolean, _SERVICES] = False
    docker_image_tag: Annotated[f.Word | None, _RUNTIMES] = None
    """Tag of OpenPAI's service images. Identifies a site of OpenPAI."""
    docker_registry_domain: Annotated[f.Word, _REGISTRY_LOGIN] = "docker.io"
    """Registry of docker_registry_username."""
    docker_registry_namespace: Annotated[f.Word, _SERVICES] = "openpai"
    docker_registry_username: Annotated[f.Word | None, _REGISTRY_LOGIN] = None
    """Account at the registry docker_registry_domain, for every machine."""
    docker_registry_password: Annotated[Secret | None, _REGISTRY_LOGIN] = None
    """Password of docker_registry_username."""
    qos_switch: Annotated[f.Boolean, _SERVICES] = Field(default=False, alias="qos-switch")
    host_daemon_port_start: Annotated[f.Port, live()] = 40000
    """First local port of outgoing connections on workers."""
    host_daemon_port_end: Annotated[f.Port, live()] = 65535
    """Last local port of outgoing connections on workers."""

    # known to OpenPAI, without effect here; each says why
    docker_check: Annotated[f.Boolean, _PREFLIGHT] = True
    resource_check: Annotated[f.Boolean, _PREFLIGHT] = True
    gcr_image_repo: Annotated[f.Word | None, _IMAGES] = None
    kube_image_repo: Annotated[f.Word | None, _IMAGES] = None
    quay_image_repo: Annotated[f.Word | None, _IMAGES] = None
    docker_image_repo: Annotated[f.Word | None, _IMAGES] = None
    etcd_image_repo: Annotated[f.Word | None, _IMAGES] = None
    pod_infra_image_repo: Annotated[f.Word | None, _IMAGES] = None
    kubeadm_download_url: Annotated[f.Word | None, _IMAGES] = None
    hyperkube_download_url: Annotated[f.Word | None, _IMAGES] = None
    openpai_kube_network_plugin: Annotated[f.Word | None, _FLANNEL] = None
    openpai_kubespray_extra_var: Annotated[f.FreeMapping, _KUBESPRAY] = Field(default_factory=dict)
    openpai_registry: Annotated[f.Word | None, _IMAGES] = None
    dev_box_registry: Annotated[f.Word | None, _IMAGES] = None
    install_run_time: Annotated[f.Boolean | None, WithoutEffect("the container runtime is always installed")] = None
    nvidia_version: Annotated[f.Word | None, WithoutEffect("use nvidia_driver")] = None
    branch_name: Annotated[f.Word | None, WithoutEffect("OpenPAI's sources are not used")] = None
    worker_default_docker_runtime: Annotated[f.Word | None, WithoutEffect("use container_default_runtime")] = None
    gpu_type: Annotated[f.Word | None, WithoutEffect("use computing-device of the machine type")] = None

    @property
    def cache_htpasswd(self) -> SecretStr | None:
        """The base64 of the cache's htpasswd file, under either of OpenPAI's two names for it."""
        return self.docker_cache_htpasswd or self.docker_cache_registry_htpasswd


CHANGES = changes(Settings)
"""Every key of config.yaml -> what a change of it does to a cluster that runs."""
NO_EFFECT = without_effect(Settings)
"""The keys that are accepted and change nothing -> why."""
