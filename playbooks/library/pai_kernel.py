#!/usr/bin/python
"""Ansible module: kernel modules, kernel parameters and swap, now and after a reboot."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_kernel
short_description: Load kernel modules, set kernel parameters, turn off swap permanently
description:
  - Writes modules-load.d and sysctl.d files and brings the running kernel to the same state.
  - Turns swap off in the running system, in fstab, in swap units and in the zram generators.
  - In a container, sets only parameters of its network namespace. The host owns the other parameters.
options:
  name: {description: Base name of the two files., type: str, default: 90-pai-install}
  modules: {description: Modules to load., type: list, elements: str, default: []}
  sysctl: {description: Parameters and values., type: dict, default: {}}
  swap_off: {description: Whether swap is turned off., type: bool, default: true}
  container: {description: Whether the machine shares its kernel with others., type: bool, default: false}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Prepare the kernel for pods
  pai_kernel: {modules: [overlay], sysctl: {net.ipv4.ip_forward: 1}}
"""
RETURN = r"""
actions: {description: What was done., type: list, elements: str, returned: always}
unavailable: {description: Modules that this kernel does not have., type: list, elements: str, returned: always}
managed: {description: Expectations for pai_state., type: list, elements: dict, returned: always}
"""

import glob
import os
import re
import shutil
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_digests import sha256
from ansible.module_utils.pai_managed import sysctl_path, unit_state
from ansible.module_utils.pai_origins import note

UNITS = "/etc/systemd/system"
ENABLED = ("enabled", "enabled-runtime")
FSTAB = "/etc/fstab"
SWAP_LINE = r"^[^#\n]\S*\s+\S+\s+swap\s.*$"
ZRAM_CONFIGS = ("/etc/systemd/zram-generator.conf", "/usr/lib/systemd/zram-generator.conf")
ZRAM_UNITS = ("zramswap.service", "zram-config.service")
HEADER = "# Managed by pai-install: changes are overwritten.\n"


def sysctl_value(value: Any) -> str:
    """As the kernel shows it: single spaces, 1 and 0 for booleans."""
    if isinstance(value, bool):
        return str(int(value))
    return " ".join(str(value).split())


def settable(name: str, container: bool) -> bool:
    """Whether a parameter is this machine's own to set."""
    return not container or name.startswith("net.")


class Kernel:
    """Changes the kernel to the desired state and records the changes."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.actions: list[str] = []
        self.unavailable: list[str] = []
        self.managed: list[dict[str, Any]] = []
        self.diffs: list[dict[str, str]] = []

    def act(self, what: str) -> bool:
        """Records an action and returns whether to perform it."""
        self.actions.append(what)
        return not self.module.check_mode

    def write(self, path: str, text: str) -> None:
        """Keeps a file with this text."""
        old = read(path)
        self.managed.append(
            {
                "kind": "file",
                "path": path,
                "sha256": sha256(text.encode()),
                "size": len(text.encode()),
                "mode": "0644",
            }
        )
        if old == text:
            return
        self.diffs.append({"before": old, "after": text, "before_header": path, "after_header": path})
        if self.act(f"wrote {path}"):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            temporary = path + ".pai-new"
            with open(temporary, "w", encoding="utf-8") as handle:
                handle.write(text)
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)

    def load_modules(self, names: list[str]) -> None:
        """Loads modules that are neither loaded nor built in."""
        folder = f"/lib/modules/{os.uname().release}"
        builtin = read(f"{folder}/modules.builtin")
        present = []
        for name in names:
            # A built-in module is always there, and has no file to load.
            known = os.path.isdir(f"/sys/module/{name}") or re.search(
                rf"/{re.escape(name)}\.ko", builtin.replace("-", "_")
            )
            if known:
                present.append(name)
            # A container or a small kernel may lack a module that this machine never needs. That is no failure.
            elif self.module.run_command(["modprobe", "--dry-run", name])[0] != 0:
                self.unavailable.append(name)
            else:
                present.append(name)
                if self.act(f"loaded {name}"):
                    self.module.run_command(["modprobe", name], check_rc=True)
        self.write(
            f"/etc/modules-load.d/{self.module.params['name']}.conf",
            HEADER + "".join(f"{m}\n" for m in present),
        )

    def set_parameters(self, wanted: dict[str, Any]) -> None:
        """Writes the file and brings the running kernel to it."""
        container = self.module.params["container"]
        values = {
            name: sysctl_value(value)
            for name, value in sorted(wanted.items())
            # systemd-sysctl fails at boot for a parameter that does not exist.
            if settable(name, container) and os.path.exists(sysctl_path(name))
        }
        lines = "".join(f"{name} = {value}\n" for name, value in values.items())
        self.write(f"/etc/sysctl.d/{self.module.params['name']}.conf", HEADER + lines)
        for name, value in values.items():
            self.managed.append({"kind": "sysctl", "name": name, "value": value})
            seen = " ".join(read(sysctl_path(name)).split())
            if seen == value:
                continue
            self.diffs.append({"before": f"{name} = {seen}\n", "after": f"{name} = {value}\n"})
            if self.act(f"set {name} from {seen} to {value}"):
                note("sysctl", name, seen)
                try:
                    with open(sysctl_path(name), "w", encoding="ascii") as handle:
                        handle.write(value)
                except OSError as error:
                    self.module.fail_json(msg=f"the kernel rejects {name} = {value}: {error}")

    def swap_off(self) -> None:
        """Turns swap off now, and removes the entries that activate it at boot."""
        if self.module.params["container"]:
            return  # swap is the kernel owner's
        self.managed.append({"kind": "noswap"})
        self.managed.append({"kind": "nomatch", "path": FSTAB, "regexp": SWAP_LINE})
        table = read(FSTAB)
        without = re.sub(
            SWAP_LINE,
            lambda line: f"# swap is off for Kubernetes (pai-install): {line.group(0)}",
            table,
            flags=re.M,
        )
        if without != table:
            self.diffs.append({"before": table, "after": without, "before_header": FSTAB, "after_header": FSTAB})
            if self.act("commented the swap lines of /etc/fstab"):
                # A broken fstab can stop a machine from booting. The first copy is the administrator's.
                if not os.path.exists(FSTAB + ".pai-backup"):
                    self.module.preserved_copy(FSTAB, FSTAB + ".pai-backup")
                # Labels of disks may be in another encoding.
                with open(FSTAB + ".pai-new", "w", encoding="utf-8", errors="surrogateescape") as handle:
                    handle.write(without)
                shutil.copystat(FSTAB, FSTAB + ".pai-new")
                os.replace(FSTAB + ".pai-new", FSTAB)
        self.mask_swap_units()
        if len(read("/proc/swaps").splitlines()) > 1 and self.act("turned swap off"):
            self.module.run_command(["swapoff", "--all"], check_rc=True)

    def mask_swap_units(self) -> None:
        """Masks swap units (GPT auto-discovery makes some, admins write others) and zram services."""
        units = self.module.run_command(["systemctl", "list-units", "--all", "--plain", "--no-legend", "--type=swap"])[
            1
        ]
        names = [line.split()[0] for line in units.splitlines() if line.strip()]
        written = {os.path.basename(path) for path in glob.glob(f"{UNITS}/*.swap") if os.path.isfile(path)}
        names += [unit for unit in ZRAM_UNITS if unit_state(unit).get("UnitFileState") in ENABLED]
        for name in sorted({*names, *written}):
            state = unit_state(name)
            if name in written:
                self.stop_unit(name, state)
            elif state.get("LoadState") != "masked" and self.act(f"masked {name}"):
                note("masked", name, True)
                self.module.run_command(["systemctl", "mask", "--now", name])
        if any(os.path.exists(path) for path in ZRAM_CONFIGS) and read(ZRAM_CONFIGS[0]) != HEADER:
            self.write(ZRAM_CONFIGS[0], HEADER)  # an empty file of the admin's turns the generator off

    def stop_unit(self, name: str, state: dict[str, str]) -> None:
        """Stops and disables a unit that an administrator wrote."""
        # systemctl masks no unit whose own file is in this folder.
        active = state.get("ActiveState") in ("active", "activating")
        if (active or state.get("UnitFileState") in ENABLED) and self.act(f"stopped {name}"):
            note("stopped", name, True)
            self.module.run_command(["systemctl", "disable", "--now", name], check_rc=True)


def read(path: str) -> str:
    """A file's text, empty when it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as handle:
            return handle.read()
    except OSError:
        return ""


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "default": "90-pai-install"},
            "modules": {"type": "list", "elements": "str", "default": []},
            "sysctl": {"type": "dict", "default": {}},
            "swap_off": {"type": "bool", "default": True},
            "container": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    kernel = Kernel(module)
    kernel.load_modules(module.params["modules"])
    kernel.set_parameters(module.params["sysctl"])
    if module.params["swap_off"]:
        kernel.swap_off()
    module.exit_json(
        changed=bool(kernel.actions),
        actions=kernel.actions,
        unavailable=kernel.unavailable,
        managed=kernel.managed,
        diff=kernel.diffs,
    )


if __name__ == "__main__":
    main()
