"""A machine's file system: an overlay over the base image, with the machine's own files."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path

from pai_install.errors import PaiError
from pai_install.lab import disk, gpu_stand_in, keys, size
from pai_install.lab.file_entry import Entry
from pai_install.lab.names import data_folders, machine_names
from pai_install.lab.spec import LabMachine, LabSpec
from pai_install.system.files import write_atomic
from pai_install.system.proc import run

# None of these may run: they would act on the box (devices, pstore, trim) or only cost time (consoles, timers).
MASKED_UNITS = (
    *("getty.target", "console-getty.service", "getty@tty1.service", "sshd-keygen.service"),
    *("systemd-udevd.service", "systemd-udevd-control.socket", "systemd-udevd-kernel.socket"),
    *("systemd-udev-trigger.service", "systemd-pstore.service", "systemd-firstboot.service"),
    *("fstrim.timer", "apt-daily.timer", "apt-daily-upgrade.timer", "motd-news.timer"),
)
# Settings that the distribution ships and that are the box's, not the machine's.
MASKED_SYSCTL = (
    *("10-coredump-debian.conf", "50-pid-max.conf", "10-console-messages.conf", "10-kernel-hardening.conf"),
    *("10-magic-sysrq.conf", "10-map-count.conf", "10-ptrace.conf", "10-zeropage.conf"),
)

EARLY_SCRIPT = """#!/bin/sh
# systemd-nspawn mounts these read-only; a machine that runs containers writes to them.
for folder in /sys/fs/cgroup /sys/fs/cgroup/* /proc/sys; do
    if mountpoint -q "$folder"; then mount -o remount,bind,rw "$folder" || :; fi
done
# the kubelet passes mounts on between the machine and its pods
mount --make-rshared /
"""
EARLY_UNIT = """[Unit]
Description=Make control groups and kernel settings writable
DefaultDependencies=no
Before=sysinit.target systemd-sysctl.service systemd-tmpfiles-setup.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/pai-lab-early
"""
JOURNAL = "[Journal]\nStorage=volatile\nRuntimeMaxUse=32M\n"


def machine_entries(machine: LabMachine, user: str, resolver: str) -> Mapping[str, Entry]:
    """Files that make a copy of the base image this machine: path without leading slash -> entry."""
    unit = "etc/systemd/system"
    entries = {
        "etc/hostname": Entry(f"{machine.name}\n"),
        "etc/hosts": Entry(f"127.0.0.1\tlocalhost\n127.0.1.1\t{machine.name}\n::1\tlocalhost ip6-localhost\n"),
        "etc/machine-id": Entry(f"{uuid.uuid4().hex}\n", 0o444),
        "etc/resolv.conf": Entry(resolver),
        f"etc/sudoers.d/90-{user}": Entry(f"{user} ALL=(ALL:ALL) NOPASSWD:ALL\n", 0o440),
        "etc/ssh/sshd_config.d/10-lab.conf": Entry(f"Port {machine.port}\nPasswordAuthentication no\nUseDNS no\n"),
        "etc/systemd/journald.conf.d/10-lab.conf": Entry(JOURNAL),
        "usr/local/sbin/pai-lab-early": Entry(EARLY_SCRIPT, 0o755),
        f"{unit}/pai-lab-early.service": Entry(EARLY_UNIT),
        f"{unit}/sysinit.target.wants/pai-lab-early.service": Entry(link="../pai-lab-early.service"),
        f"{unit}/default.target": Entry(link="/usr/lib/systemd/system/multi-user.target"),
    }
    entries |= {f"{unit}/{name}": Entry(link="/dev/null") for name in MASKED_UNITS}
    entries |= {f"etc/sysctl.d/{name}": Entry(link="/dev/null") for name in MASKED_SYSCTL}
    return entries | gpu_stand_in.entries(machine) | size.entries(machine)


def resolver_text(resolv_conf: str, uplink: str) -> str:
    """A machine's /etc/resolv.conf: the box's, or its uplink's where the box resolves on loopback."""
    servers = [line.split()[1] for line in resolv_conf.splitlines() if line.startswith("nameserver ")]
    only_loopback = bool(servers) and all(server.startswith("127.") or server == "::1" for server in servers)
    return uplink if only_loopback and uplink else resolv_conf


def box_resolver() -> str:
    """The resolver settings for the machines of the controller host."""
    texts = [Path(name) for name in ("/etc/resolv.conf", "/run/systemd/resolve/resolv.conf")]
    return resolver_text(*(path.read_text() if path.exists() else "" for path in texts))


def mount_options(image: Path, upper: Path, work: Path) -> str:
    """Returns the options of the overlay. It is volatile, because the machine is disposable and package installation
    syncs often.
    """
    return f"lowerdir={image},upperdir={upper},workdir={work},volatile"


def ensure_root(spec: LabSpec, machine: LabMachine, image: Path) -> bool:
    """Mounts a machine's root, and fills it the first time. Returns False if it was mounted.

    A machine keeps its original base image, whatever `image` is.
    """
    names = machine_names(spec, machine)
    if disk.is_mounted(names.root):
        return False
    disk.ensure_disk(names)
    for folder in (names.root, names.upper, names.work, *(names.data / name for name in data_folders(machine))):
        folder.mkdir(parents=True, exist_ok=True)
    # A link whose image was deleted does not exist, so it is made again.
    if not names.base.exists():
        names.base.unlink(missing_ok=True)
        names.base.symlink_to(image)
    # an overlay mounted volatile refuses to be mounted again until this is gone, even after a clean unmount
    shutil.rmtree(names.work / "work/incompat", ignore_errors=True)
    options = mount_options(names.base.resolve(), names.upper, names.work)
    run(["mount", "-t", "overlay", "pai-lab", "-o", options, names.root])
    prepared = names.folder / "prepared"
    if not prepared.exists():
        _fill(spec, machine, names.root)
        prepared.touch()
    return True


def _fill(spec: LabSpec, machine: LabMachine, root: Path) -> None:
    for name, entry in machine_entries(machine, spec.user, box_resolver()).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        if entry.link:
            path.symlink_to(entry.link)
        else:
            write_atomic(path, entry.content, mode=entry.mode)
    for folder in (*data_folders(machine).values(), *machine.folders):
        (root / folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
    keys.ensure_host_key(root / "etc/ssh", machine.name)
    if account(root, spec.user) is None:
        run(["chroot", root, "useradd", "--create-home", "--shell", "/bin/bash", "--groups", "sudo", spec.user])


def authorize(spec: LabSpec, machine: LabMachine) -> bool:
    """Adds the lab's key to a running or stopped machine. Returns False if it existed. Raises PaiError if the user is
    missing.
    """
    root = machine_names(spec, machine).root
    found = account(root, spec.user)
    if found is None:
        raise PaiError(
            f"cannot log in to {machine.name}: it has no user {spec.user}",
            code="lab-user-missing",
            remedy="run pai-install lab down, then lab up",
        )
    user_id, group_id, home = found
    folder = root / home.lstrip("/") / ".ssh"
    allowed = folder / "authorized_keys"
    line = keys.public_key(spec.key_file)
    if allowed.exists() and line in allowed.read_text():
        return False
    folder.mkdir(mode=0o700, exist_ok=True)
    write_atomic(allowed, line, mode=0o600)
    for path in (folder, allowed):
        shutil.chown(path, user_id, group_id)
    return True


def account(root: Path, user: str) -> tuple[int, int, str] | None:
    """Returns user id, group id, and home of a user of the system below `root`, or None."""
    for line in (root / "etc/passwd").read_text().splitlines():
        fields = line.split(":")
        if fields[0] == user:
            return int(fields[2]), int(fields[3]), fields[5]
    return None
