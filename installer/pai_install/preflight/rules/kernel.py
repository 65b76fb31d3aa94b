"""The kernel: its version, modules, control groups, process limits, swap."""

from __future__ import annotations

import re

from pai_install.preflight.model import Case, Check, Ruling, failed, had, passed, skipped, warned

_OLDEST_KERNEL = (5, 13)  # kube-proxy's nftables mode
_CONTROLLERS = ("cpu", "cpuset", "memory", "pids")
_LEAST_PIDS = 65536


def version(case: Case) -> Ruling | None:
    """New enough for kube-proxy on nftables."""
    seen = had(case.evidence.system, "system").kernel
    numbers = tuple(int(word) for word in re.findall(r"\d+", seen)[:2])
    if numbers >= _OLDEST_KERNEL:
        return passed("the kernel is new enough", seen)
    remedy = "install a newer kernel of the distribution and reboot"
    return failed("the kernel is too old for kube-proxy", value=seen, expected="5.13 or newer", remedy=remedy)


def modules(case: Case) -> Ruling | None:
    """The modules that containers and the pod network need can be loaded."""
    seen = had(case.evidence.modules, "modules")
    if not seen.missing:
        return passed("all needed kernel modules are there", ", ".join(seen.there))
    missing = ", ".join(seen.missing)
    if case.evidence.container:
        return skipped(f"a container has its host's kernel (not seen as modules: {missing})")
    if not seen.tree and seen.other_trees:
        return failed(
            "the running kernel's modules are gone: the kernel was updated",
            value=missing,
            expected="modules of the running kernel",
            remedy="reboot this machine",
        )
    remedy = "install the kernel's module package (linux-image, linux-modules-extra) on this machine"
    return failed(f"kernel modules are missing: {missing}", value=missing, expected="all of them", remedy=remedy)


def cgroups(case: Case) -> Ruling | None:
    """Control groups of version 2, with all controllers."""
    seen = had(case.evidence.cgroups, "cgroups")
    lacking = [name for name in _CONTROLLERS if name not in seen.controllers]
    if lacking and not (seen.version == 1 and case.evidence.container):
        remedy = "boot without cgroup_disable= and with cgroup_enable= for them on the kernel's command line"
        return failed(f"control group controllers are off: {', '.join(lacking)}", value=" ".join(seen.controllers),
                      expected=" ".join(_CONTROLLERS), remedy=remedy)  # fmt: skip
    if seen.version == 2:
        return passed("control groups, version 2", "2")
    return warned(
        "control groups of version 1: Kubernetes is about to drop them",
        value="1",
        expected="2",
        remedy="boot with systemd.unified_cgroup_hierarchy=1, without systemd.legacy_systemd_cgroup_controller",
    )


def limits(case: Case) -> Ruling | None:
    """Enough processes for many jobs at a time."""
    system = had(case.evidence.system, "system")
    small = {
        name: seen
        for name, seen in (("kernel.pid_max", system.pid_max), ("kernel.threads-max", system.threads_max))
        if seen is not None and seen < _LEAST_PIDS
    }
    if not small:
        return passed("process limits are wide enough", str(system.pid_max))
    return warned(
        "the kernel allows few processes: data loaders of several jobs may not start",
        value=", ".join(f"{name} = {seen}" for name, seen in small.items()),
        expected=f"{_LEAST_PIDS} or more",
        remedy="set them in a file of /etc/sysctl.d",
    )


def swap(case: Case) -> Ruling | None:
    """Nothing swaps, now and after the next boot."""
    seen = had(case.evidence.swap, "swap")
    if case.evidence.container:  # what /proc/swaps shows is the host's
        seen = seen.model_copy(update={"active": ()})
    sources = [*(f"on now: {name}" for name in seen.active), *(f"/etc/fstab: {line}" for line in seen.fstab)]
    sources += [f"unit {name}" for name in seen.units] + [f"zram: {name}" for name in seen.zram]
    if not sources:
        return passed("nothing swaps, and nothing would after a boot")
    message = "swap is on" if seen.active else "swap is off, but would come back at the next boot"
    return warned(
        f"{message}; apply turns it off for good",
        value="; ".join(sources),
        expected="none",
        remedy="nothing, if the machine needs no swap: apply runs swapoff, comments fstab lines and masks units",
    )


CHECKS = (
    Check("kernel", "Linux 5.13 or newer", version),
    Check("kernel-modules", "overlay, br_netfilter, nf_conntrack, nf_tables and vxlan can be had", modules),
    Check("cgroups", "Control groups of version 2 with cpu, cpuset, memory and pids", cgroups),
    Check("process-limits", "kernel.pid_max and kernel.threads-max of 65536 or more", limits),
    Check("swap", "No swap, and nothing that brings it back at boot", swap),
)
