"""Filters for the configuration of kubeadm and the kubelet: pure functions, so that no YAML is pasted together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

API_PORT = 6443
RESOLV_CONF = "/etc/resolv.conf"
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


def kubeadm_ignored(facts: Mapping[str, Any]) -> list[str]:
    """Names of kubeadm's preflight checks that cannot pass on a machine for a reason that is known and harmless."""
    ignored = []
    # kubeadm reads the configuration of the kernel, which a container does not see, and rejects version 1.
    if facts["cgroup_version"] == 1 or facts["virtualization"]["container"]:
        ignored.append("SystemVerification")
    # kubeadm wants the module br_netfilter. A container of a kernel without it cannot load one.
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
    """Returns the KubeletConfiguration of the cluster. `settings.kubelet_config` overrides it."""
    config: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "cgroupDriver": facts["cgroup_driver"],
        "containerRuntimeEndpoint": CRI_SOCKET,
        # Since Kubernetes 1.35, the kubelet refuses cgroup v1 unless this says otherwise.
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


def kubelet_flags(arguments: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    """Returns the flags of a machine's kubelet for its unit. `arguments` overrides them.

    kubeadm sets one resolver file for all kubelets: the file of systemd-resolved, if it runs on the first control-plane
    node. A machine without systemd-resolved has no such file, and would start no pod.
    """
    flags = {} if facts["resolved"] else {"resolv-conf": RESOLV_CONF}
    return " ".join(f"--{name}={value}" for name, value in sorted({**flags, **arguments}.items()))


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
        # An empty list and no list differ: without one, kubeadm sets its own taint on a control plane.
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
        "localAPIEndpoint": {"advertiseAddress": settings["address"], "bindPort": API_PORT},
        # kubeadm makes a token in any case: for a minute, in a group without rights
        "bootstrapTokens": [{"ttl": "1m0s", "groups": ["system:bootstrappers:pai-install:none"]}],
    }
    # On a single machine, the DNS pods could not be apart, and one of them would never start.
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
    """Returns YAML text. It converts through JSON, because YAML does not know Ansible's subclasses of values."""
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
                # etcd's default is 2 GiB. A full etcd accepts no write at all until an administrator defragments it.
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
                    # NodeRestriction keeps nodes apart. An external IP of a Service could take over traffic to any
                    # address.
                    "enable-admission-plugins": "NodeRestriction,DenyServiceExternalIPs",
                    "encryption-provider-config": f"{ENCRYPTION_DIR}/config.json",
                    "profiling": "false",
                    # root of a worker receives tokens that programs send to its kubelet
                    "service-account-extend-token-expiration": "false",
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
                    # a kind that comes with an add-on is counted in a group's quota from then on, not 5 minutes later
                    "resource-quota-sync-period": "30s",
                    # Kubernetes' default, made explicit: people read the history of finished jobs
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
        # The API server must start also where no role has made the folder yet.
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
    """Returns kubeadm's configuration for a join.

    settings: name, endpoint, token, ca_hash. An additional control-plane node also needs address, schedulable,
    certificate_key.
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
            "localAPIEndpoint": {"advertiseAddress": settings["address"], "bindPort": API_PORT},
            "certificateKey": settings["certificate_key"],
        }
    return _yaml([join])


def authentication_config(anonymous: str, jwt: Sequence[Mapping[str, Any]]) -> str:
    """Returns the API server's AuthenticationConfiguration. anonymous: the file with the paths without credentials."""
    return f"{anonymous}\n" + (_yaml([{"jwt": jwt}]) if jwt else "")


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Any]:
        """Filter name -> function."""
        return {
            "authentication_config": authentication_config,
            "kubeadm_ignored": kubeadm_ignored,
            "kubeadm_init": kubeadm_init,
            "kubeadm_join": kubeadm_join,
            "kubelet_flags": kubelet_flags,
        }
