#!/usr/bin/python
"""Ansible module: a machine as it was before pai-install."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_reset
short_description: Take everything of the cluster and of pai-install off the machine
description:
  - Stops the kubelet, its pods, and units of pai-install. Removes their data, and reverts the records of roles.
  - Files of the admin's come back from the copies that were kept. Packages go that came with us and nothing needs.
  - Images, Docker's data, the component store's content and storages stay unless I(data) is given.
  - Deletes nothing behind a mount. Continues after an interruption. A second run changes nothing.
  - The cluster is told nothing. A control plane's member of etcd has to be removed there first.
options:
  data: {description: Remove images and other data as well., type: bool, default: false}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Clean the machine
  pai_reset:
"""
RETURN = r"""
actions: {description: What was done., type: list, elements: str, returned: always}
kept: {description: "Remaining parts, with the reason.", type: list, elements: str, returned: always}
"""

import glob
import json
import os
import shutil
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_machine import PROGRAM_MISSING, command
from ansible.module_utils.pai_managed import ROLES_DIR, STATE_DIR, unit_state
from ansible.module_utils.pai_node_remains import (
    RemainsError,
    chains,
    empty_folders,
    folders,
    interfaces,
    mounts_below,
    pods,
    remove_chains,
    remove_docker_filters,
    remove_folder,
    remove_interface,
    remove_pods,
    remove_table,
    tables,
    unmount_below,
)
from ansible.module_utils.pai_origins import origins
from ansible.module_utils.pai_packages import PackagesError, install, installed, removable, remove, simulated, unneeded
from ansible.module_utils.pai_root_kubectl import leads_to_the_cluster, unlink_root_kubectl
from ansible.module_utils.pai_undo import Undo

UNITS = "/etc/systemd/system"
KUBELET, CONTAINERD, DOCKER = "kubelet.service", "containerd.service", "docker.service"
KUBELET_DIR = "/var/lib/kubelet"
CONTAINERD_DATA = "/var/lib/containerd"
# the role whose packages keep data of people: removed with their data only where that is asked for
RUNTIME_ROLE = "container_runtime"
KEPT_DATA = (STATE_DIR + "/store",)
# packages that Docker ends with
DOCKERS = frozenset(["docker.io", "docker-ce"])
# another clock's package goes when chrony comes
GAVE_WAY = ("systemd-timesyncd", "ntp", "ntpsec", "openntpd")
UNIT_S = 120
# packages that go set others free, which nothing needs then
ROUNDS = 4


def records() -> dict[str, dict[str, Any]]:
    """Returns role -> its record. An unreadable record is empty."""
    found = {}
    for path in sorted(glob.glob(ROLES_DIR + "/*.json")):
        try:
            with open(path, encoding="utf-8") as handle:
                found[os.path.basename(path)[: -len(".json")]] = dict(json.load(handle))
        except (OSError, ValueError):
            continue
    return found


class Reset:
    """Takes everything away, in an order that can be interrupted anywhere."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.records = records()
        self.origins = origins()
        before = self.origins or {}
        self.undo = Undo(before.get("files", {}), check=module.check_mode)
        self.kept: list[str] = []

    def act(self, what: str) -> bool:
        """Records an action and returns whether to perform it."""
        return self.undo.act(what)

    def expectations(self, kind: str) -> list[dict[str, Any]]:
        """Those of a kind, of all records."""
        return [item for record in self.records.values() for item in record.get("managed", []) if item["kind"] == kind]

    def run(self) -> None:
        """Resets the machine. Raises RemainsError and PackagesError with the obstacle."""
        # The order matters: containerd must run to remove pods, and packages must be there to remove their units.
        self.stop_the_node()
        self.remove_remains()
        self.stop_units()
        self.undo_records()
        self.remove_packages()
        self.undo.copies(
            item["path"] for record in self.records.values() for item in record.get("managed", []) if "path" in item
        )
        self.start_remaining_services()
        for folder in empty_folders():
            if self.act(f"removed {folder}"):
                os.rmdir(folder)
        self.remove_data()
        self.forget()

    def stop_the_node(self) -> None:
        """Stops the kubelet first, because it would restart pods. Then stops the pods while containerd runs."""
        self.stop(KUBELET)
        if not os.path.isdir(KUBELET_DIR):
            return
        if unit_state(CONTAINERD).get("ActiveState") != "active" and not self.module.check_mode:
            # Pods of a stopped containerd cannot be removed, and their mounts would stay.
            command(["systemctl", "start", CONTAINERD], UNIT_S)
        found = pods()
        if found and self.act(f"removed {len(found)} pods"):
            remove_pods()

    def remove_remains(self) -> None:
        """Removes the remains of the kubelet, kubeadm, and the pod network."""
        if mounts_below(KUBELET_DIR) and self.act(f"unmounted what was below {KUBELET_DIR}"):
            unmount_below(KUBELET_DIR)
        if leads_to_the_cluster() and self.act("removed root's kubeconfig"):
            unlink_root_kubectl()
        for folder in folders():
            if self.act(f"removed {folder}"):
                remove_folder(folder)
        for name in interfaces():
            if self.act(f"removed the interface {name}"):
                remove_interface(name)
        for table in tables():
            if self.act(f"removed the packet filter {table}"):
                remove_table(table)
        if chains() and self.act("removed the packet filters of pods"):
            remove_chains()

    def stop_units(self) -> None:
        """Stops the units with files of ours."""
        managed = {
            os.path.basename(item["path"]) for item in self.expectations("file") if item["path"].startswith(UNITS)
        }
        for name in sorted(managed - {KUBELET}):
            # docker.service.d/x.conf is none; a containerd that the distribution has, too, starts again later
            if name.rpartition(".")[2] in ("service", "timer", "socket", "mount", "path"):
                self.stop(name)

    def stop(self, name: str) -> None:
        """Stops and disables a unit that exists."""
        state = unit_state(name)
        running = state.get("ActiveState") in ("active", "activating", "reloading")
        if not running and state.get("UnitFileState") not in ("enabled", "enabled-runtime"):
            return
        if self.act(f"stopped {name}"):
            command(["systemctl", "disable", "--now", name], UNIT_S)
            if unit_state(name).get("ActiveState") in ("active", "deactivating"):
                # A running program would write its files again after they are removed.
                raise RemainsError(f"{name} does not stop")

    def undo_records(self) -> None:
        """Files, blocks, merged settings, kernel parameters, masked units."""
        before = self.origins or {}
        for record in self.records.values():
            self.undo.items(record.get("managed", []))
        self.undo.parameters(before.get("sysctl", {}))
        for name in before.get("masked", {}):
            if unit_state(name).get("LoadState") == "masked" and self.act(f"unmasked {name}"):
                command(["systemctl", "unmask", name], UNIT_S)
        # Swap that a role turned off is on again without a reboot.
        if "/etc/fstab" in self.undo.changed and not self.module.check_mode:
            command(["swapon", "--all"], UNIT_S)
        if self.undo.changed and not self.module.check_mode:
            command(["systemctl", "daemon-reload"], UNIT_S)

    def remove_packages(self) -> None:
        """Removes the packages that we installed. Without a record of the original packages, all stay."""
        recorded = {item["name"] for item in self.expectations("package")}
        there = installed()
        if self.origins is None:
            self.kept += [f"package {name}: it may have been there before" for name in sorted(recorded & there.keys())]
            return
        before = self.origins["packages"]
        managed = removable(sorted(recorded), there, before, simulated)
        self.kept += [
            f"package {name}: another one needs it"
            for name in sorted(recorded & there.keys() - before.keys() - {*managed})
        ]
        if not managed or not self.act(f"removed the packages {', '.join(managed)}"):
            return
        # Packages that nothing needed before are the administrator's business.
        loose = unneeded()
        of_runtime = {
            item["name"] for item in self.records.get(RUNTIME_ROLE, {}).get("managed", []) if item["kind"] == "package"
        }
        if DOCKERS & {*managed}:  # not one that was there before: it goes on
            self.stop_docker()
        plain = [name for name in managed if name in of_runtime and not self.module.params["data"]]
        # A purge of a runtime's package may delete its data, such as images and volumes.
        remove(plain, purge=False)
        remove([name for name in managed if name not in plain], purge=True)
        for _round in range(ROUNDS):
            remove(removable(sorted(unneeded() - loose), installed(), before, simulated), purge=True)
        self.reinstall([name for name in GAVE_WAY if name in before and name not in installed()])

    def reinstall(self, names: list[str]) -> None:
        """Packages that one of ours took the place of. They need an archive: without one, the report names them."""
        if names and not install(names):
            self.kept += [f"package {name} is missing: apt-get install {name}" for name in names]

    def stop_docker(self) -> None:
        """It goes: its containers first, which with live-restore would outlive it, its bridge and packet filters."""
        status, output = command(["docker", "ps", "--quiet"], UNIT_S)
        if status == 0 and output.split():
            command(["docker", "stop", *output.split()], UNIT_S)
        command(["systemctl", "disable", "--now", DOCKER, "docker.socket"], UNIT_S)
        remove_interface("docker0")
        remove_docker_filters()

    def start_remaining_services(self) -> None:
        """Units that are not ours read their old files again."""
        if not self.records or self.module.check_mode:
            return
        for name in (self.origins or {}).get("stopped", {}):
            if unit_state(name).get("LoadState") == "loaded":
                self.act(f"started {name} again")
                command(["systemctl", "enable", "--now", name], UNIT_S)
        names = [item["name"] for item in self.expectations("unit")]
        for name in dict.fromkeys([CONTAINERD, DOCKER, *names]):
            state = unit_state(name)
            if state.get("LoadState") != "loaded" or name.startswith("pai-") or name == KUBELET:
                continue
            if name == CONTAINERD or state.get("ActiveState") == "active":
                self.act(f"restarted {name}")
                # systemd refuses a start after several failures in a short time.
                command(["systemctl", "reset-failed", name], UNIT_S)
                command(["systemctl", "enable", "--now", name], UNIT_S)
                command(["systemctl", "restart", name], UNIT_S)

    def remove_data(self) -> None:
        """Images, unless a runtime that stays has them, and the content of stores and storages."""
        if not self.module.params["data"]:
            self.kept += [f"{path}: data" for path in (*KEPT_DATA, CONTAINERD_DATA) if os.path.isdir(path)]
            return
        # A containerd of the distribution uses the same folder.
        stays = unit_state(CONTAINERD).get("LoadState") == "loaded"
        paths = [] if stays else [CONTAINERD_DATA]
        paths += [item["path"] for item in self.expectations("present") if item.get("content")]
        paths += [
            json.loads(record["notes"]["content"]).get("folder", "")
            for record in self.records.values()
            if record.get("notes", {}).get("content")
        ]
        for path in paths:
            if os.path.isdir(path) and self.act(f"removed {path} and what was in it"):
                remove_folder(path)

    def forget(self) -> None:
        """The records go last: an interrupted run finds them again."""
        if not os.path.isdir(STATE_DIR):
            return
        kept = () if self.module.params["data"] else KEPT_DATA
        left = [path for path in glob.glob(STATE_DIR + "/*") if path not in kept]
        # a run that is cut off in here must not leave notes of what was before without the records
        left.sort(key=lambda path: os.path.basename(path) in ("roles", "origins.json"))
        if left and self.act("removed the records"):
            for path in left:
                if os.path.isdir(path):
                    shutil.rmtree(path)
                else:
                    os.unlink(path)
        if not self.module.check_mode and not os.listdir(STATE_DIR):
            os.rmdir(STATE_DIR)


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(argument_spec={"data": {"type": "bool", "default": False}}, supports_check_mode=True)
    if command(["systemctl", "--version"])[0] == PROGRAM_MISSING:
        module.fail_json(msg="the machine has no systemd")
    reset = Reset(module)
    try:
        reset.run()
    except (RemainsError, PackagesError, OSError) as error:
        module.fail_json(
            msg=f"the machine is not clean: {error}",
            remedy="resolve what is named and repeat the command, which goes on from there",
            actions=reset.undo.actions,
        )
    module.exit_json(changed=bool(reset.undo.actions), actions=reset.undo.actions, kept=reset.kept)


if __name__ == "__main__":
    main()
