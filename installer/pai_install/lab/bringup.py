"""`lab up`: starts every stopped or missing machine of a lab."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from pai_install.errors import ExitCode, PaiError
from pai_install.lab import cgroups, disk, faults, keys, machine, network, rootfs
from pai_install.lab.box import box_hierarchies, lab_lock, raise_settings
from pai_install.lab.distribution import SUITE
from pai_install.lab.machine_options import Choice
from pai_install.lab.mixin import BEHIND_BASTION, as_resource, mix_in, mixins_of, recorded
from pai_install.lab.names import MachineNames, lab_names, machine_names
from pai_install.lab.plan import open_ledger
from pai_install.lab.ready import wait_ready
from pai_install.lab.record import Kind, Ledger, Resource
from pai_install.lab.requirements import ensure_requirements
from pai_install.lab.spec import LabMachine, LabSpec, checked
from pai_install.lab.suite import ensure_base, is_of
from pai_install.system.files import private_folder

_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class UpReport:
    """Result of `up`: one line per created or started object (empty: no changes), and the duration."""

    changed: tuple[str, ...]
    duration_s: float


def up(
    spec: LabSpec, choice: Choice | None = None, *, confirm: Callable[[str], bool], progress: Callable[[str], None]
) -> UpReport:
    """Starts every machine of the lab. Running machines stay unchanged.

    choice: suites of new machines, and mix-ins. Each mix-in runs once in a machine's life.
    confirm: asked before the installation of packages on the controller host. progress: gets one line per step.
    Raises PaiError if the host lacks a requirement, the subnet is used, a machine does not start, or has another suite.
    """
    began = time.monotonic()
    choice = choice or Choice()
    checked(spec)
    changed = [f"installed {package}" for package in ensure_requirements(spec, confirm=confirm, progress=progress)]
    images = base_images(spec, spec.machines, choice.suites, progress)
    with lab_lock():
        ledger = open_ledger(spec)
        lines = _make_shared(spec, ledger)
        with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
            started = pool.map(lambda one: ensure_machine(spec, one, images[one.name], ledger), spec.machines)
            lines += [f"started {one.name}" for one, new in zip(spec.machines, started, strict=True) if new]
        for one in spec.machines:
            rootfs.authorize(spec, one)
        publish_keys(spec, spec.machines)
    for line in lines:
        progress(line)
    # Without the lock, because other labs must not wait for boots and mix-ins.
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        mixed = pool.map(lambda one: _finish(spec, one, choice, ledger, progress), spec.machines)
        lines += [line for of_machine in mixed for line in of_machine]
    return UpReport((*changed, *lines), time.monotonic() - began)


def _finish(
    spec: LabSpec, one: LabMachine, choice: Choice, ledger: Ledger, progress: Callable[[str], None]
) -> list[str]:
    """Waits for a machine and runs its missing mix-ins. Returns one line per mix-in."""
    has = mixins_of(ledger.record, one)
    if BEHIND_BASTION in has:
        return []
    wait_ready(spec, one)
    lines = []
    for name in choice.mixins.get(one.name, ()):
        if name not in has:
            mix_in(spec, one, name)
            ledger.add([as_resource(one, name)])
            lines.append(f"mixed {name} into {one.name}")
            progress(lines[-1])
    return lines


def base_images(
    spec: LabSpec, machines: Iterable[LabMachine], suites: Mapping[str, str], notify: Callable[[str], None]
) -> dict[str, Path]:
    """Returns machine -> base image. Raises PaiError for a machine with a disk of another suite."""
    found: dict[str, Path] = {}
    made: dict[str, Path] = {}
    for one in machines:
        link, wanted = machine_names(spec, one).base, suites.get(one.name)
        if not link.exists():
            suite = wanted or SUITE
            made[suite] = found[one.name] = made.get(suite) or ensure_base(suite, notify)
            continue
        found[one.name] = link.resolve()
        if wanted and not is_of(wanted, found[one.name]):
            raise PaiError(
                f"cannot create {one.name}: it exists, and is not {wanted}",
                code="lab-machine-exists-with-other-system",
                remedy="run pai-install lab down, then lab up with the new suites",
                exit_code=ExitCode.USAGE,
            )
    return found


def _make_shared(spec: LabSpec, ledger: Ledger) -> list[str]:
    names = lab_names(spec)
    changed: list[str] = []
    private_folder(spec.state_dir)
    if not spec.key_file.exists():
        ledger.add([Resource(Kind.KEY_PAIR, str(spec.key_file))])
        keys.ensure_key_pair(spec.key_file)
        changed.append(f"made the key pair {spec.key_file}")
    changed += [f"raised {name} of the controller host" for name in raise_settings()]
    if network.ensure_bridge(spec):
        changed.append(f"made the bridge {names.bridge} with {spec.gateway}")
    if network.ensure_nat(spec):
        changed.append(f"added NAT for {spec.subnet} (nftables table {names.nft_table})")
    if network.drops_forwarded():
        ledger.add([Resource(Kind.FORWARD_RULE, names.bridge)])
        if network.ensure_forward_rules(spec):
            changed.append(f"allowed forwarding of {names.bridge} in the controller host's firewall")
    return changed


def ensure_machine(spec: LabSpec, one: LabMachine, image: Path, ledger: Ledger) -> bool:
    """Starts a machine with its existing disk or a new one. Returns False if it runs already."""
    names = machine_names(spec, one)
    trees = box_hierarchies()
    groups = cgroups.machine_cgroups(trees, lab_names(spec).lab, one.name)
    if machine.is_running(groups):
        return False
    # The keeper may be gone while processes of its machine remain.
    machine.kill([], groups.own)
    for folder in groups.own:
        cgroups.remove(folder)
    cgroups.make(groups)
    network.ensure_link(spec, one)
    rootfs.ensure_root(spec, one, image)
    command = machine.nspawn_command(one, names, legacy_cgroups=cgroups.is_legacy(trees))
    # nspawn refuses to start while the mount of a killed machine exists
    disk.unmount(names.export)
    process = machine.start(names, machine.keeper_script(command, groups))
    ledger.add([Resource(Kind.PROCESS, one.name, str(process))])
    return True


def heal(spec: LabSpec, one: LabMachine) -> tuple[str, ...]:
    """Clears every fault of a machine, starts it if it is off, and waits for it. Returns the cleared faults."""
    images = base_images(spec, [one], {}, lambda _line: None)
    with lab_lock():
        healed = faults.clear(spec, one)
        if ensure_machine(spec, one, images[one.name], open_ledger(spec)):
            healed = (*healed, faults.Fault.POWER_OFF.value)
        publish_keys(spec, [one])
    wait_ready(spec, one)
    return healed


def reinstall(spec: LabSpec, one: LabMachine) -> None:
    """Kills a machine, deletes its disk, starts it with a new disk of the same suite, and waits for it.

    The site's known_hosts keeps the old host key, as for an admin with new hardware. Raises PaiError if the machine
    does not start or its disk is in use.
    """
    images = base_images(spec, [one], {}, lambda _line: None)
    with lab_lock():
        ledger = open_ledger(spec)
        machine.kill([], cgroups.machine_cgroups(box_hierarchies(), lab_names(spec).lab, one.name).own)
        _discard(machine_names(spec, one))
        ledger.forget(recorded(ledger.record, one))
        ensure_machine(spec, one, images[one.name], ledger)
        rootfs.authorize(spec, one)
    with tempfile.TemporaryDirectory() as folder:
        elsewhere = replace(spec, state_dir=Path(folder))
        publish_keys(elsewhere, [one])
        wait_ready(elsewhere, one)


def _discard(names: MachineNames) -> None:
    """Deletes the writes of a machine, and its kernel objects: interfaces, routes, rules.

    It keeps the link to its base image, and thus its suite.
    """
    network.delete_link(names.veth)
    network.delete_netns(names.netns)
    for mounted in (names.root, names.disk):
        disk.unmount(mounted)
    (names.folder / "prepared").unlink(missing_ok=True)
    names.image.unlink(missing_ok=True)
    shutil.rmtree(names.disk, ignore_errors=True)


def publish_keys(spec: LabSpec, machines: Iterable[LabMachine]) -> None:
    """Writes the host keys of machines to the site's known_hosts, which may have forgotten them or know others."""
    found = {one: keys.ensure_host_key(machine_names(spec, one).root / "etc/ssh", one.name) for one in machines}
    keys.write_known_hosts(spec, found)
