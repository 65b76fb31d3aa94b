"""Bringing a control plane to another version with kubeadm upgrade: whether it is needed, and by which commands."""

from __future__ import annotations

import glob
import os
import re
import shutil

MANIFESTS = "/etc/kubernetes/manifests"
PATCHES = "/etc/kubernetes/patches"
# the pods that carry the version of Kubernetes; etcd's has its own
PODS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
# it makes the rules again by which the holder of a token is any node; see pai_join_token
OPENS_BOOTSTRAP = "bootstrap-token"
# what kubeadm keeps of the manifests and of etcd's data before; once the API answers it is only a copy of secrets
LEFTOVERS = ("kubeadm-upgraded-manifests*", "kubeadm-backup-manifests*", "kubeadm-backup-etcd*")


def outdated(version: str, manifests: str = MANIFESTS) -> list[str]:
    """The static pods of Kubernetes that are there in another version."""
    return [name for name in PODS if _version(os.path.join(manifests, f"{name}.yaml")) not in ("", version)]


def _version(manifest: str) -> str:
    try:
        with open(manifest, encoding="utf-8", errors="replace") as handle:
            found = re.search(r"^\s*image: \S+:v(\d+\.\d+\.\d+\S*)$", handle.read(), re.MULTILINE)
    except OSError:
        return ""
    return found.group(1) if found else ""


def commands(
    version: str, config: str, *, first: bool, ignored: list[str], patches: str = PATCHES
) -> list[tuple[str, ...]]:
    """The words of kubeadm. first: the control plane that the cluster's own settings are upgraded with.

    Its ClusterConfiguration is uploaded before: the tags of etcd and DNS stand there, and kubeadm keeps them.
    """
    options = [f"--ignore-preflight-errors={','.join(ignored)}"] if ignored else []
    if glob.glob(patches + "/*"):
        # kubeadm upgrade does not know the patches of init. Without them it would undo ours.
        options.append(f"--patches={patches}")
    # The settings of the cluster are upgraded once, on the first control plane.
    if not first:
        return [("upgrade", "node", *options)]
    return [
        ("init", "phase", "upload-config", "kubeadm", "--config", config),
        ("upgrade", "apply", f"v{version}", "--yes", f"--skip-phases={OPENS_BOOTSTRAP}", *options),
    ]


def clean(folder: str = "/etc/kubernetes/tmp") -> None:
    """Removes the temporary files of kubeadm after a completed upgrade."""
    for pattern in LEFTOVERS:
        for path in glob.glob(os.path.join(folder, pattern)):
            shutil.rmtree(path, ignore_errors=True)
