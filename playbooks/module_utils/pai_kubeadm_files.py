"""Files that kubeadm and the kubelet make on a member of the cluster: who may read them, and bringing them back."""

from __future__ import annotations

import glob
import os
import shutil
import stat
from typing import Any

from ansible.module_utils.pai_digests import file_sha256
from ansible.module_utils.pai_managed import STATE_DIR, too_open

KUBERNETES = "/etc/kubernetes"
KUBECONFIGS = ("admin", "kubelet", "controller-manager", "scheduler")
MANIFESTS = KUBERNETES + "/manifests"
COPIES = STATE_DIR + "/rendered"
RENDERED = (
    MANIFESTS + "/*.yaml",
    "/var/lib/kubelet/config.yaml",
    "/var/lib/kubelet/kubeadm-flags.env",
)
# Only root may change these files, and read most of them: pattern -> the maximum permissions. kubeadm and
# the kubelet make some of these files readable for all.
GUARDED = {
    KUBERNETES + "/*.conf": "0600",
    MANIFESTS + "/*.yaml": "0600",
    KUBERNETES + "/encryption/*": "0600",
    KUBERNETES + "/pki": "0755",
    KUBERNETES + "/pki/etcd": "0755",
    KUBERNETES + "/pki/*.key": "0600",
    KUBERNETES + "/pki/etcd/*.key": "0600",
    KUBERNETES + "/pki/*.crt": "0600",
    KUBERNETES + "/pki/etcd/*.crt": "0600",
    "/var/lib/etcd": "0700",
    "/var/lib/kubelet/*.yaml": "0600",
    "/var/lib/kubelet/kubeadm-flags.env": "0600",
    "/var/lib/kubelet/pki/kubelet.key": "0600",
    "/var/lib/kubelet/pki/kubelet-client-current.pem": "0600",
}


def restricted_files() -> dict[str, str]:
    """Files and folders of this machine with restricted permissions -> their maximum mode."""
    return {path: most for pattern, most in GUARDED.items() for path in sorted(glob.glob(pattern))}


def mode_problems() -> dict[str, str]:
    """Returns path -> problem, for guarded files and folders with a wrong owner or too many permissions."""
    return {path: problem for path, most in restricted_files().items() if (problem := too_open(path, most))}


def enforce_modes() -> None:
    """Gives the restricted files back to root, and removes excess permissions."""
    for path in mode_problems():
        os.chown(path, 0, 0)
        # Permissions are only taken away. An admin may have stricter ones.
        os.chmod(path, stat.S_IMODE(os.stat(path).st_mode) & int(restricted_files()[path], 8))


def rendered_files() -> dict[str, str]:
    """Files that kubeadm renders on this machine -> their digests."""
    return {path: file_sha256(path) for pattern in RENDERED for path in sorted(glob.glob(pattern))}


def written_at() -> dict[str, int]:
    """Rendered files -> when they were written, in nanoseconds since the epoch."""
    return {path: os.stat(path).st_mtime_ns for path in rendered_files()}


def keep_times(before: dict[str, str], written: dict[str, int]) -> None:
    """Gives files that were rendered as they had been their old time: a younger one asks for a restart."""
    for path, digest in rendered_files().items():
        # kubeadm writes all of its files again, also unchanged ones. The kubelet would restart for nothing.
        if before.get(path) == digest and os.stat(path).st_mtime_ns != written[path]:
            os.utime(path, ns=(written[path], written[path]))


def expectations(state: str) -> list[dict[str, Any]]:
    """For pai_state: rendered files as they are, who may read other guarded ones, kubeconfigs that must be there."""
    kubeconfigs: list[dict[str, Any]] = [
        {"kind": "present", "path": path, "filled": True} for path in kubeconfigs_of(state)
    ]
    rendered = rendered_files()
    private = [
        {"kind": "private", "path": path, "mode": mode}
        for path, mode in restricted_files().items()
        if path not in rendered
    ]
    return [*kubeconfigs, *private] + [
        {
            "kind": "file",
            "path": path,
            "sha256": digest,
            "size": os.stat(path).st_size,
            "mode": f"{stat.S_IMODE(os.stat(path).st_mode):04o}",
            "restarts": reader(path),
        }
        for path, digest in rendered.items()
    ]


def kubeconfigs_of(state: str) -> list[str]:
    """Returns kubeconfigs that the certificate authority of a control plane can re-create. The admin may remove
    super-admin.conf.
    """
    return [] if state == "join" else [os.path.join(KUBERNETES, f"{name}.conf") for name in KUBECONFIGS]


def put_in_place(source: str, path: str) -> None:
    """Moves a file to `path`, also where containerd makes an empty folder there again and again."""
    while True:
        try:
            return os.replace(source, path)
        except IsADirectoryError:
            # rmdir removes an empty folder only, so no file of an admin is lost.
            os.rmdir(path)


def reader(path: str) -> str:
    """Returns the program that restarts when a rendered file changes, in the words of a plan."""
    if path.startswith(MANIFESTS):
        return f"the static pod {os.path.basename(path)[: -len('.yaml')]}"
    return "kubelet.service"


def kept(state: str) -> list[str]:
    """Files that kubeadm renders only while joining: a copy is kept, to bring them back."""
    if state == "init":
        return []
    return [RENDERED[2], MANIFESTS + "/etcd.yaml"] if state == "join-control-plane" else [RENDERED[2]]


def keep_copies(state: str) -> None:
    """Keeps the copies."""
    os.makedirs(COPIES, mode=0o700, exist_ok=True)
    for path in kept(state):
        # kubeadm has no command that renders these files again without a join.
        shutil.copy2(path, copy_of(path))


def copy_of(path: str) -> str:
    """Where the copy of a kept file is."""
    return os.path.join(COPIES, os.path.basename(path))


def bring_back(state: str) -> None:
    """Replaces files that differ from their copies, or are gone."""
    for path in kept(state):
        copy = copy_of(path)
        if os.path.exists(copy) and (not os.path.exists(path) or file_sha256(path) != file_sha256(copy)):
            # The kubelet watches the folder of manifests. A half-written file would stop its pod.
            shutil.copy2(copy, path + ".pai-new")
            os.replace(path + ".pai-new", path)


def differing(state: str, rendered: str) -> list[str]:
    """Manifests that are not as kubeadm renders them (files in the folder `rendered`), or not as their copies are."""
    wanted = {os.path.basename(path): path for path in glob.glob(rendered + "/*.yaml")}
    wanted.update({os.path.basename(path): copy_of(path) for path in kept(state) if path.startswith(MANIFESTS)})
    return sorted(
        name
        for name, source in wanted.items()
        if os.path.exists(source) and digest_or_none(os.path.join(MANIFESTS, name)) != file_sha256(source)
    )


def digest_or_none(path: str) -> str | None:
    """Returns the digest of a file, or None if it is missing."""
    return file_sha256(path) if os.path.exists(path) else None


def other_than(folder: str, rendered: str) -> list[str]:
    """Names of files in the folder `rendered` that are not so in `folder`."""
    names = sorted(os.path.basename(path) for path in glob.glob(rendered + "/*") if os.path.isfile(path))
    return [name for name in names if digest_or_none(f"{folder}/{name}") != file_sha256(f"{rendered}/{name}")]
