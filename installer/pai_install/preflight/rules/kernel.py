"""The kernel: its version, modules, control groups, process limits, swap."""

from __future__ import annotations

import re

from pai_install.checks.result import Result, failed, passed, skipped, warned
from pai_install.preflight.model import Case, machine_check

_OLDEST_KERNEL = (5, 13)  # kube-proxy's nftables mode
_CONTROLLERS = ("cpu", "cpuset", "memory", "pids")


@machine_check(
    id="kernel",
    title="The kernel is Linux 5.13 or newer",
    reads="system: kernel release",
    rule="FAIL below 5.13",
    source="kube-proxy's nftables mode",
    remedy="install a newer kernel of the distribution and reboot",
)
def version(case: Case) -> Result | None:
    """New enough for kube-proxy on nftables."""
    seen = case.evidence.system.kernel
    numbers = tuple(int(word) for word in re.findall(r"\d+", seen)[:2])
    if numbers >= _OLDEST_KERNEL:
        return passed(seen, message="the kernel is new enough")
    return failed("the kernel is too old for kube-proxy", value=seen, expected="5.13 or newer")


@machine_check(
    id="kernel-modules",
    title="Modules overlay, br_netfilter, nf_conntrack, nf_tables, and vxlan are available",
    reads="modules: loaded, built in or installed for the running kernel",
    rule="FAIL when one is missing. SKIP in a container",
    remedy="install the kernel's module package (linux-image, linux-modules-extra) on this machine",
)
def modules(case: Case) -> Result | None:
    """The modules that containers and the pod network need can be loaded."""
    seen = case.evidence.modules
    if not seen.missing:
        return passed(", ".join(seen.there), message="all needed kernel modules are available")
    missing = ", ".join(seen.missing)
    if case.evidence.container:
        return skipped(f"a container uses the kernel of its host (not visible as modules: {missing})")
    if not seen.tree and seen.other_trees:
        return failed(
            "the modules of the running kernel are no longer installed: the kernel was updated",
            value=missing,
            expected="modules of the running kernel",
            remedy="reboot this machine",
        )
    return failed(f"kernel modules are missing: {missing}", value=missing, expected="all of them")


@machine_check(
    id="cgroups",
    title="Control groups are version 2, with cpu, cpuset, memory, and pids",
    reads="cgroups: /sys/fs/cgroup/cgroup.controllers, /proc/cgroups",
    rule="FAIL when a controller is off. WARN for version 1, SKIP for it in a container",
    source="Kubernetes",
    remedy="boot with systemd.unified_cgroup_hierarchy=1, without systemd.legacy_systemd_cgroup_controller",
)
def cgroups(case: Case) -> Result | None:
    """Control groups of version 2, with all controllers."""
    seen = case.evidence.cgroups
    lacking = [name for name in _CONTROLLERS if name not in seen.controllers]
    if lacking and not (seen.version == 1 and case.evidence.container):
        remedy = "remove cgroup_disable= from the kernel command line, and add cgroup_enable= for these controllers"
        return failed(f"control group controllers are off: {', '.join(lacking)}", value=" ".join(seen.controllers),
                      expected=" ".join(_CONTROLLERS), remedy=remedy)  # fmt: skip
    if seen.version == 2:
        return passed("2", message="control groups, version 2")
    if case.evidence.container:  # such as a machine of the lab
        return skipped("depends on the host of the container")
    return warned(
        "control groups are version 1, which is deprecated in Kubernetes",
        value="1",
        expected="2",
    )


@machine_check(
    id="process-limits",
    title="kernel.pid_max and kernel.threads-max are at least 65536",
    reads="system: /proc/sys/kernel",
    rule="WARN below process-limit",
    limits=("process-limit",),
    remedy="set both in a file of /etc/sysctl.d",
)
def limits(case: Case) -> Result | None:
    """Enough processes for many jobs at a time."""
    system, least = case.evidence.system, case.limit("process-limit")
    small = {
        name: seen
        for name, seen in (("kernel.pid_max", system.pid_max), ("kernel.threads-max", system.threads_max))
        if seen is not None and seen < least
    }
    if not small:
        return passed(str(system.pid_max), message="the process limits are high enough")
    return warned(
        "the kernel allows few processes: data loaders of several jobs may not start",
        value=", ".join(f"{name} = {seen}" for name, seen in small.items()),
        expected=f"{least:g} or more",
    )


@machine_check(
    id="swap",
    title="Swap is off, now and after a reboot",
    reads="swap: /proc/swaps, /etc/fstab, systemd units, zram",
    rule="WARN for active or configured swap",
    source="kubelet (failSwapOn)",
    remedy="no action is required: apply runs swapoff, comments out the lines of fstab, and masks the units",
)
def swap(case: Case) -> Result | None:
    """Swap is off, now and after a reboot."""
    seen = case.evidence.swap
    active = () if case.evidence.container else seen.active  # a container's /proc/swaps shows the host's
    sources = [*(f"on now: {name}" for name in active), *(f"/etc/fstab: {line}" for line in seen.fstab)]
    sources += [f"unit {name}" for name in seen.units] + [f"zram: {name}" for name in seen.zram]
    if not sources:
        return passed(message="swap is off, now and after a reboot")
    message = "swap is on" if active else "swap is off now but starts at boot"
    return warned(
        f"{message}, and apply will turn it off permanently",
        value="; ".join(sources),
        expected="none",
    )
