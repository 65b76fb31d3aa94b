"""Static pods of this machine: when their programs started, and restarting them."""

from __future__ import annotations

import glob
import os
import shutil
import time
from collections.abc import Callable

from ansible.module_utils.pai_kubeadm_files import MANIFESTS
from ansible.module_utils.pai_managed import STATE_DIR

# whose files each static pod of kubeadm names in its command line
KUBERNETES = "/etc/kubernetes/"
PODS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


def until(holds: Callable[[], bool], timeout_s: float) -> bool:
    """Whether something comes true in time."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(1)
    return True


def wait_for_restart(manifests: list[str], since: float, timeout_s: float = 60) -> None:
    """Waits until the programs of these static pods have restarted, because the old ones respond until then."""
    names = [name[: -len(".yaml")] for name in manifests]
    # Starts of processes are known to a tick of the kernel's clock only, so a second of tolerance.
    until(lambda: all(youngest_start(name) >= since - 1 for name in names), timeout_s)


def aside_of(name: str) -> str:
    """Where the manifest of a static pod waits while its program stops."""
    return os.path.join(STATE_DIR, f"{name}.aside")


def stopped_halfway(name: str, root: str = "/") -> bool:
    """Whether a restart of the static pod was interrupted after its program had stopped."""
    manifest, aside = (
        os.path.join(root, path.lstrip("/")) for path in (os.path.join(MANIFESTS, f"{name}.yaml"), aside_of(name))
    )
    return os.path.exists(aside) and not os.path.exists(manifest)


def restart_static_pod(name: str, timeout_s: float = 60) -> None:
    """Makes the kubelet restart a static pod at once, if there is one: its state is outdated, or it waits to retry.

    Killed in between, the manifest waits aside, and the next restart puts it back.
    """
    manifest, aside = os.path.join(MANIFESTS, f"{name}.yaml"), aside_of(name)
    if os.path.exists(manifest):
        # The kubelet ends a static pod whose manifest is gone. A touched manifest would change nothing.
        shutil.move(manifest, aside)
    elif not os.path.exists(aside):
        return
    until(lambda: not youngest_start(name), timeout_s)
    shutil.move(aside, manifest)


def youngest_start(program: str, proc: str = "/proc") -> float:
    """Returns the start time of the youngest process of that static pod in seconds since the epoch, or 0.

    A pod of an add-on may run the same program, as HiveD's runs a kube-scheduler. It has no file of KUBERNETES.
    """
    with open(proc + "/uptime", encoding="utf-8") as handle:
        booted = time.time() - float(handle.read().split()[0])
    ticks = os.sysconf("SC_CLK_TCK")
    starts = [0.0]
    for path in glob.glob(proc + "/[0-9]*/stat"):
        try:
            with open(path, encoding="utf-8", errors="replace") as handle:
                text = handle.read()
            with open(os.path.join(os.path.dirname(path), "cmdline"), encoding="utf-8", errors="replace") as handle:
                words = handle.read()
        except OSError:
            continue  # it ended meanwhile
        # A name of a process may contain parentheses, so the last one ends it.
        name, _, rest = text.partition("(")[2].rpartition(")")
        # The kernel cuts the name of a process to 15 characters.
        if name == program[:15] and KUBERNETES in words:
            starts.append(booted + int(rest.split()[19]) / ticks)
    return max(starts)
