"""`lab up`: brings every machine of a lab to running and leaves alone what runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pai_install.lab import cgroups, faults, keys, machine, network, rootfs
from pai_install.lab.apt import read_box
from pai_install.lab.box import box_hierarchies, lab_lock, raise_settings
from pai_install.lab.image import ensure_image
from pai_install.lab.names import lab_names, machine_names
from pai_install.lab.plan import open_ledger
from pai_install.lab.ready import wait_ready
from pai_install.lab.record import Kind, Ledger, Resource
from pai_install.lab.requirements import ensure_requirements
from pai_install.lab.spec import LabMachine, LabSpec, checked
from pai_install.system.files import private_folder

_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class UpReport:
    """What `up` did: one line per thing made or started (empty: nothing to do), and how long it took."""

    changed: tuple[str, ...]
    duration_s: float


def up(spec: LabSpec, *, confirm: Callable[[str], bool], progress: Callable[[str], None]) -> UpReport:
    """Brings every machine of the lab to running; what runs stays as it is.

    confirm is asked before packages are installed on the dev box; progress gets one line per step.
    Raises PaiError when the box lacks something, the subnet is taken or a machine does not come up.
    """
    began = time.monotonic()
    checked(spec)
    changed = [f"installed {package}" for package in ensure_requirements(spec, confirm=confirm, progress=progress)]
    image = ensure_image(read_box(), progress)
    with lab_lock():
        ledger = open_ledger(spec)
        lines = _make_shared(spec, ledger)
        with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
            started = pool.map(lambda one: ensure_machine(spec, one, image, ledger), spec.machines)
            lines += [f"started {one.name}" for one, new in zip(spec.machines, started, strict=True) if new]
        for one in spec.machines:
            rootfs.authorize(spec, one)
        publish_keys(spec)
    for line in lines:
        progress(line)
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        list(pool.map(lambda one: wait_ready(spec, one), spec.machines))
    return UpReport((*changed, *lines), time.monotonic() - began)


def _make_shared(spec: LabSpec, ledger: Ledger) -> list[str]:
    names = lab_names(spec)
    changed: list[str] = []
    private_folder(spec.state_dir)
    if not spec.key_file.exists():
        ledger.add([Resource(Kind.KEY_PAIR, str(spec.key_file))])
        keys.ensure_key_pair(spec.key_file)
        changed.append(f"made the key pair {spec.key_file}")
    changed += [f"raised {name} of the dev box" for name in raise_settings()]
    if network.ensure_bridge(spec):
        changed.append(f"made the bridge {names.bridge} with {spec.gateway}")
    if network.ensure_nat(spec):
        changed.append(f"added NAT for {spec.subnet} (nftables table {names.nft_table})")
    if network.drops_forwarded():
        ledger.add([Resource(Kind.FORWARD_RULE, names.bridge)])
        if network.ensure_forward_rules(spec):
            changed.append(f"allowed forwarding of {names.bridge} in the dev box's firewall")
    return changed


def ensure_machine(spec: LabSpec, one: LabMachine, image: Path, ledger: Ledger) -> bool:
    """Starts a machine with the disk it has, or a new one; False when it runs."""
    names = machine_names(spec, one)
    trees = box_hierarchies()
    groups = cgroups.machine_cgroups(trees, lab_names(spec).lab, one.name)
    if machine.is_running(groups):
        return False
    machine.kill([], groups.own)
    for folder in groups.own:
        cgroups.remove(folder)
    cgroups.make(groups)
    network.ensure_link(spec, one)
    rootfs.ensure_root(spec, one, image)
    command = machine.nspawn_command(one, names, legacy_cgroups=cgroups.is_legacy(trees))
    process = machine.start(names, machine.keeper_script(command, groups))
    ledger.add([Resource(Kind.PROCESS, one.name, str(process))])
    return True


def heal(spec: LabSpec, one: LabMachine) -> tuple[str, ...]:
    """Clears every fault of a machine, starts it if it is off, waits for it; returns what was cleared."""
    image = ensure_image(read_box(), lambda _line: None)
    with lab_lock():
        healed = faults.clear(spec, one)
        if ensure_machine(spec, one, image, open_ledger(spec)):
            healed = (*healed, faults.Fault.POWER_OFF.value)
    wait_ready(spec, one)
    return healed


def publish_keys(spec: LabSpec) -> None:
    """Writes the host keys of all machines to the site's known_hosts."""
    found = {one: keys.ensure_host_key(machine_names(spec, one).root / "etc/ssh", one.name) for one in spec.machines}
    keys.write_known_hosts(spec, found)
