"""Filters that build configuration as data: pure functions, so that no YAML, TOML or JSON is pasted together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import tomlkit
import yaml

CRI_IMAGES = "io.containerd.cri.v1.images"
CRI_RUNTIME = "io.containerd.cri.v1.runtime"
CNI_PROGRAMS = "/opt/cni/bin"
CRI_SOCKET = "unix:///run/containerd/containerd.sock"
AUDIT_POLICY = "/etc/kubernetes/audit/policy.yaml"
AUDIT_LOG_DIR = "/var/log/kubernetes/audit"
PATCHES_DIR = "/etc/kubernetes/patches"
ENCRYPTION_DIR = "/etc/kubernetes/encryption"
AUTHENTICATION_DIR = "/etc/kubernetes/authentication"
# All suites of TLS 1.2 with forward secrecy and authenticated encryption; those of 1.3 are all of that kind.
CIPHER_SUITES = [
    f"TLS_ECDHE_{key}_WITH_{cipher}"
    for cipher in ("AES_128_GCM_SHA256", "AES_256_GCM_SHA384", "CHACHA20_POLY1305")
    for key in ("ECDSA", "RSA")
]
TLS_ARGUMENTS = {"tls-cipher-suites": ",".join(CIPHER_SUITES), "tls-min-version": "VersionTLS12"}


def merge_toml(text: str, patch: Mapping[str, Any]) -> str:
    """The TOML document with `patch` in it; the admin's own keys, comments and order stay."""
    document = tomlkit.parse(text)
    _merge_table(document, patch)
    return tomlkit.dumps(document)


def _merge_table(table: Any, patch: Mapping[str, Any]) -> None:
    for key, value in patch.items():
        if isinstance(value, Mapping):
            if not isinstance(table.get(key), Mapping):
                table[key] = tomlkit.table()
            _merge_table(table[key], value)
        elif table.get(key) != value:
            table[key] = value


def containerd_patch(settings: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """What containerd's configuration (version 3 or newer) must contain.

    settings: sandbox_image, nvidia_path (empty: no NVIDIA runtime), default_runtime.
    facts: `ansible_facts.pai` of the machine.
    """
    systemd = cgroup_driver(facts) == "systemd"
    runtimes: dict[str, Any] = {
        "runc": {"runtime_type": "io.containerd.runc.v2", "options": {"SystemdCgroup": systemd}}
    }
    if settings["nvidia_path"]:
        options = {"BinaryName": settings["nvidia_path"], "SystemdCgroup": systemd}
        runtimes["nvidia"] = {"runtime_type": "io.containerd.runc.v2", "options": options}
    return {
        "plugins": {
            CRI_IMAGES: {
                "pinned_images": {"sandbox": settings["sandbox_image"]},
                "registry": {"config_path": "/etc/containerd/certs.d"},
            },
            CRI_RUNTIME: {
                "enable_cdi": True,
                # without the capability the kernel refuses lower scores and no pod would start
                "restrict_oom_score_adj": not facts["sys_resource"],
                "cni": {"conf_template": "/etc/containerd/cni.template.json", "max_conf_num": 1},
                "containerd": {"default_runtime_name": settings["default_runtime"], "runtimes": runtimes},
            },
        }
    }


def containerd_config(current: Mapping[str, Any], patch: Mapping[str, Any]) -> str:
    """The whole configuration file: what is there, in the daemon's version, with `patch` in it.

    current: result of pai_containerd_config (text, version). A disabled CRI plugin, as Docker's packages ship it, is
    enabled: without it the machine cannot be a node.
    """
    text = current["text"] or f"version = {current['version']}\n"
    document = tomlkit.parse(text)
    disabled = document.get("disabled_plugins")
    if disabled is not None:
        kept = [name for name in disabled if name not in ("cri", "io.containerd.grpc.v1.cri", CRI_RUNTIME, CRI_IMAGES)]
        if kept != list(disabled):
            document["disabled_plugins"] = kept
    _merge_table(document, patch)
    _find_cni_programs(document["plugins"][CRI_RUNTIME]["cni"])
    return tomlkit.dumps(document)


def _find_cni_programs(cni: Any) -> None:
    """Our CNI programs come first where the configuration names folders, as distributions' packages do."""
    named = [*cni.get("bin_dirs", ()), *filter(None, [cni.get("bin_dir")])]
    if named and named[0] != CNI_PROGRAMS:
        cni["bin_dirs"] = [CNI_PROGRAMS, *(folder for folder in named if folder != CNI_PROGRAMS)]
    if named and cni.get("bin_dir"):
        cni["bin_dir"] = ""


def registry_hosts(hosts: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """The hosts.toml files of containerd, for pai_files: registry host -> URLs to ask in its place, in order."""
    files = []
    for host, urls in hosts.items():
        document: dict[str, Any] = {"host": {url: {"capabilities": ["pull", "resolve"]} for url in urls}}
        path = f"/etc/containerd/certs.d/{host}/hosts.toml"
        # containerd reads it anew for every pull
        files.append({"path": path, "content": tomlkit.dumps(document), "mode": "0644", "live": True})
    return files


def docker_patch(settings: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """What Docker's daemon.json must contain.

    settings: data_root, log_max_size, log_max_file, live_restore, mirrors, insecure_registries, nvidia_path,
    default_runtime. A log driver that the admin chose stays, with its options: ours would be refused by it.
    """
    patch: dict[str, Any] = {
        "data-root": settings["data_root"],
        "exec-opts": [f"native.cgroupdriver={cgroup_driver(facts)}"],
        "live-restore": settings["live_restore"],
    }
    if facts.get("docker", {}).get("log_driver", "json-file") == "json-file":
        patch["log-driver"] = "json-file"
        patch["log-opts"] = {"max-size": settings["log_max_size"], "max-file": str(settings["log_max_file"])}
    if settings["mirrors"]:
        patch["registry-mirrors"] = list(settings["mirrors"])
    if settings["insecure_registries"]:
        patch["insecure-registries"] = list(settings["insecure_registries"])
    if facts["sys_resource"]:
        # containerd 2.1.5 and newer start containers with 1024 open files, too few for data loaders
        patch["default-ulimits"] = {"nofile": {"Name": "nofile", "Soft": 1048576, "Hard": 1048576}}
    if settings["nvidia_path"]:
        patch["runtimes"] = {"nvidia": {"path": settings["nvidia_path"], "args": []}}
        patch["default-runtime"] = settings["default_runtime"]
    return patch


def cgroup_driver(facts: Mapping[str, Any]) -> str:
    """The cgroup driver that the kubelet, containerd and Docker of a machine all use.

    systemd, except on cgroup v1 in a container, where the machine's systemd does not own the hierarchies.
    """
    shared_v1 = facts["cgroup_version"] == 1 and facts["virtualization"]["container"]
    return "cgroupfs" if shared_v1 else "systemd"


def kubeadm_ignored(facts: Mapping[str, Any]) -> list[str]:
    """Names of kubeadm's preflight checks that cannot pass on a machine for a reason that is known and harmless."""
    ignored = []
    if facts["cgroup_version"] == 1 or facts["virtualization"]["container"]:
        ignored.append("SystemVerification")
    if not facts["bridge_netfilter"]:
        ignored.append("FileContent--proc-sys-net-bridge-bridge-nf-call-iptables")
    return ignored


KUBELET_HARDENING = {
    "authentication": {
        "anonymous": {"enabled": False},
        "webhook": {"enabled": True},
        "x509": {"clientCAFile": "/etc/kubernetes/pki/ca.crt"},
    },
    "authorization": {"mode": "Webhook"},
    "readOnlyPort": 0,
    # kubeadm writes 0s for "the default", which a reader takes for "never"
    "streamingConnectionIdleTimeout": "4h0m0s",
    "makeIPTablesUtilChains": True,
    "tlsMinVersion": "VersionTLS12",
    "tlsCipherSuites": CIPHER_SUITES,
    # as Docker does; a pod that needs more says so (securityContext.seccompProfile)
    "seccompDefault": True,
    # far above what eight ranks with their data loaders start, far below what stops a machine
    "podPidsLimit": 65536,
}


def kubelet_config(settings: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """KubeletConfiguration of the cluster; `settings.kubelet_config` has the last word."""
    config: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "cgroupDriver": cgroup_driver(facts),
        "containerRuntimeEndpoint": CRI_SOCKET,
        "failCgroupV1": facts["cgroup_version"] != 1,
        "rotateCertificates": True,
        # a training node pulls many large images: several at a time, as many as its disk serves
        "serializeImagePulls": False,
        "maxParallelImagePulls": 4,
        # The node keeps what the kubelet and the system need when a job takes all it can get.
        "systemReserved": {"cpu": "200m", "memory": "512Mi"},
        **KUBELET_HARDENING,
    }
    return _deep_merge(config, settings.get("kubelet_config") or {})


def _deep_merge(base: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in patch.items():
        old = merged.get(key)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        merged[key] = _deep_merge(old, value) if both else value  # type: ignore[arg-type]
    return merged


def _arguments(values: Mapping[str, Any]) -> list[dict[str, str]]:
    return [{"name": name, "value": str(value)} for name, value in sorted(values.items())]


def _registration(name: str, *, schedulable: bool) -> dict[str, Any]:
    """schedulable: no taint keeps jobs away, also on a control plane."""
    registration: dict[str, Any] = {"name": name, "criSocket": CRI_SOCKET, "imagePullPolicy": "IfNotPresent"}
    if schedulable:
        registration["taints"] = []
    return registration


def kubeadm_init(settings: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    """kubeadm's configuration for the first control plane, several YAML documents.

    settings: name, address, schedulable (whether it is also a worker), version, image_repository, endpoint,
    sans, pod_cidr, node_prefix, service_cidr, dns_domain, dns_apart, coredns_tag, etcd_tag, kubelet_config.
    """
    init = {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "InitConfiguration",
        "nodeRegistration": _registration(settings["name"], schedulable=settings["schedulable"]),
        "localAPIEndpoint": {"advertiseAddress": settings["address"], "bindPort": 6443},
    }
    if settings["dns_apart"]:
        init["patches"] = {"directory": PATCHES_DIR}
    documents = [
        init,
        _cluster_configuration(settings),
        kubelet_config(settings, facts),
        _proxy_configuration(facts),
    ]
    return _yaml(documents)


def _yaml(documents: Sequence[Mapping[str, Any]]) -> str:
    """YAML text; through JSON, since Ansible's values are subclasses that YAML does not know."""
    return str(yaml.safe_dump_all(json.loads(json.dumps(documents)), sort_keys=False))


def _cluster_configuration(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "ClusterConfiguration",
        "kubernetesVersion": f"v{settings['version']}",
        "imageRepository": settings["image_repository"],
        "controlPlaneEndpoint": settings["endpoint"],
        "networking": {
            "podSubnet": settings["pod_cidr"],
            "serviceSubnet": settings["service_cidr"],
            "dnsDomain": settings["dns_domain"],
        },
        "dns": {"imageTag": settings["coredns_tag"]},
        "etcd": {
            "local": {
                "imageTag": settings["etcd_tag"],
                "extraArgs": _arguments({"quota-backend-bytes": 8 << 30}),
            }
        },
        "apiServer": {
            "certSANs": list(settings["sans"]),
            "extraArgs": _arguments(
                {
                    "audit-log-maxage": 30,
                    "audit-log-maxbackup": 10,
                    "audit-log-maxsize": 100,
                    "audit-log-path": f"{AUDIT_LOG_DIR}/audit.log",
                    "audit-policy-file": AUDIT_POLICY,
                    "authentication-config": f"{AUTHENTICATION_DIR}/config.yaml",
                    "enable-admission-plugins": "NodeRestriction,DenyServiceExternalIPs",
                    "encryption-provider-config": f"{ENCRYPTION_DIR}/config.json",
                    "profiling": "false",
                    **TLS_ARGUMENTS,
                }
            ),
            "extraVolumes": [
                _volume("audit-policy", "/etc/kubernetes/audit", read_only=True),
                _volume("audit-log", AUDIT_LOG_DIR, read_only=False),
                _volume("authentication", AUTHENTICATION_DIR, read_only=True),
                _volume("encryption", ENCRYPTION_DIR, read_only=True),
            ],
        },
        "controllerManager": {
            "extraArgs": _arguments(
                {
                    "node-cidr-mask-size": settings["node_prefix"],
                    "profiling": "false",
                    # Kubernetes' own number, said aloud: jobs that ended are history that people look at
                    "terminated-pod-gc-threshold": 12500,
                    **TLS_ARGUMENTS,
                }
            )
        },
        "scheduler": {"extraArgs": _arguments({"profiling": "false", **TLS_ARGUMENTS})},
    }


def _volume(name: str, path: str, *, read_only: bool) -> dict[str, Any]:
    return {
        "name": name,
        "hostPath": path,
        "mountPath": path,
        "readOnly": read_only,
        "pathType": "DirectoryOrCreate",
    }


def _proxy_configuration(facts: Mapping[str, Any]) -> dict[str, Any]:
    proxy: dict[str, Any] = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
    }
    if facts["virtualization"]["container"]:
        proxy["conntrack"] = {"maxPerCore": 0, "min": 0}  # the limit belongs to the kernel's owner
    return proxy


def kubeadm_join(settings: Mapping[str, Any]) -> str:
    """kubeadm's configuration for a join.

    settings: name, endpoint, token, ca_hash; for one more control plane also address, schedulable, certificate_key.
    """
    join: dict[str, Any] = {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "JoinConfiguration",
        "discovery": {
            "bootstrapToken": {
                "apiServerEndpoint": settings["endpoint"],
                "token": settings["token"],
                "caCertHashes": [settings["ca_hash"]],
            }
        },
        "nodeRegistration": _registration(settings["name"], schedulable=settings.get("schedulable", False)),
    }
    if settings.get("certificate_key"):
        join["controlPlane"] = {
            "localAPIEndpoint": {"advertiseAddress": settings["address"], "bindPort": 6443},
            "certificateKey": settings["certificate_key"],
        }
    return _yaml([join])


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Any]:
        """Filter name -> function."""
        return {
            "cgroup_driver": cgroup_driver,
            "containerd_config": containerd_config,
            "containerd_patch": containerd_patch,
            "docker_patch": docker_patch,
            "kubeadm_ignored": kubeadm_ignored,
            "kubeadm_init": kubeadm_init,
            "kubeadm_join": kubeadm_join,
            "merge_toml": merge_toml,
            "pai_registry_hosts": registry_hosts,
        }
