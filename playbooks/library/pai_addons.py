#!/usr/bin/python
"""Ansible module: the cluster's add-ons (its action renders their objects on the controller host)."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_addons
short_description: Apply add-ons, prune objects of older versions, remove unwanted add-ons
description:
  - Applies the objects of each add-on if they differ (server-side apply). A failed add-on does not stop the others.
  - Keeps a record of each add-on on the machine. Recorded objects that no add-on has now are deleted
    where they carry the label C(app.kubernetes.io/managed-by=pai-install).
  - Removes add-ons that are not in I(wanted). A CSI driver is removed after the last pod with its volumes, and a
    definition of a kind after the last object of that kind.
  - A conflicting add-on is removed before its successor is applied. Until then, the successor waits.
options:
  addons:
    description: "The add-ons to apply: name, objects, waits, replaces, not_beside."
    type: list
    elements: dict
    required: true
  wanted: {description: Names of all add-ons that the cluster should have., type: list, elements: str, required: true}
  only: {description: "Add-ons to remove. Empty for all.", type: list, elements: str, default: []}
  kept:
    description: "Objects of any wanted add-on, which are never pruned: [namespace, kind/name]."
    type: list
    elements: list
    required: true
  settings: {description: "Record name -> digests of the settings.", type: dict, default: {}}
  timeout: {description: Seconds to wait for each rollout., type: int, default: 180}
  kubeconfig: {description: Which kubeconfig to use., type: path, default: /etc/kubernetes/admin.conf}
  kubectl: {description: Which kubectl to use., type: path, default: /usr/local/bin/kubectl}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Apply the add-ons
  pai_addons: {wanted: "{{ cluster_addons_wanted }}"}
"""
RETURN = r"""
applied: {description: Add-ons with changed objects., type: list, elements: str, returned: always}
removed: {description: Objects that were deleted., type: list, elements: str, returned: always}
kept: {description: Why objects that are no longer wanted stay., type: list, elements: str, returned: always}
"""

import glob
import json
import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_kubectl import ADMIN_CONF, KUBECTL, Kubectl
from ansible.module_utils.pai_managed import ROLES_DIR, write_record
from ansible.module_utils.pai_objects import ObjectError, Objects, expectations

PREFIX = "addon."


def recorded(name: str) -> list[tuple[str, str]]:
    """Returns the objects in a record as (namespace, kind/name), or [] without a readable record."""
    try:
        with open(os.path.join(ROLES_DIR, name + ".json"), encoding="utf-8") as handle:
            managed = json.load(handle)["managed"]
        return [(item["namespace"], item["name"]) for item in managed if item["kind"] == "object"]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def definitions(record: str) -> list[str]:
    """The kinds of objects that a record defines: names of CustomResourceDefinitions."""
    entries = (name.partition("/") for _namespace, name in recorded(record))
    return [plain for kind, _slash, plain in entries if kind == "customresourcedefinition"]


def records() -> list[str]:
    """Names of the records of add-ons on this machine."""
    return sorted(os.path.basename(path)[: -len(".json")] for path in glob.glob(f"{ROLES_DIR}/{PREFIX}*.json"))


class Addons:
    """One run of the module."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.objects = Objects(Kubectl(module.params["kubeconfig"], module.params["kubectl"]))
        self.keep = {(namespace, name) for namespace, name in module.params["kept"]}
        self.applied: list[str] = []
        self.removed: list[str] = []
        self.stay: list[str] = []
        self.failures: list[str] = []
        self.evidence: dict[str, list[str]] = {}

    def run(self) -> str:
        """Applies, prunes, and removes add-ons. Returns the diff."""
        addons = self.module.params["addons"]
        unwanted, others = self.unwanted(), {PREFIX + name for addon in addons for name in addon["not_beside"]}
        # Two schedulers at once would both place pods, so the old one goes first.
        self.remove_all([name for name in unwanted if name in others])
        # One kubectl for all add-ons: each call costs as much as a login.
        differs, shown, unsure = self.objects.difference([entry for addon in addons for entry in addon["objects"]])
        for addon in addons:
            # The default binds the add-on of this round, as a lambda reads its variables when it is called.
            self.attempt(addon["name"], lambda addon=addon: self.install(addon, differs))
        self.remove_all([name for name in unwanted if name not in others])
        gone = "".join(f"- {name}\n" for name in self.removed) + "".join(f"({why})\n" for why in self.stay)
        return f"{shown}{gone}" + (f"({unsure})\n" if unsure else "")

    def unwanted(self) -> list[str]:
        """Returns the records of unwanted add-ons that this run may remove."""
        only, wanted = self.module.params["only"], self.module.params["wanted"]
        names = {name: name[len(PREFIX) :] for name in records()}
        return [name for name, addon in names.items() if addon not in wanted and (not only or addon in only)]

    def remove_all(self, names: list[str]) -> None:
        """Removes add-ons. Definitions come last, because a removed add-on may have objects of them."""
        for name in sorted(names, key=lambda name: bool(definitions(name))):
            self.attempt(name[len(PREFIX) :], lambda name=name: self.remove(name))

    def attempt(self, name: str, work: Any) -> None:
        """Processes one add-on. A failure is reported at the end."""
        try:
            work()
        except ObjectError as error:
            self.failures.append(f"{name}: {error}")
            self.evidence.update({f"{name} {heading}": lines for heading, lines in error.evidence.items()})

    def install(self, addon: dict[str, Any], differs: bool) -> None:
        """Applies one add-on, prunes the other objects of its record, and writes the new record."""
        if differs:
            self.applied.append(addon["name"])
        old = [entry for name in (PREFIX + addon["name"], *addon["replaces"]) for entry in recorded(name)]
        if self.module.check_mode:
            self.removed += [name for namespace, name in old if (namespace, name) not in self.keep]
            return
        if left := [name for name in self.unwanted() if name[len(PREFIX) :] in addon["not_beside"]]:
            raise ObjectError(f"waits until {' and '.join(name[len(PREFIX) :] for name in left)} is gone")
        if differs:
            self.objects.apply(addon["objects"])
        for entry in addon["waits"]:
            self.objects.wait_for(entry, self.module.params["timeout"])
        # After the rollout: until the new objects work, the old ones serve.
        self.prune(old)
        name = PREFIX + addon["name"]
        # The record is last, so a killed run is done again.
        write_record(name, self.module.params["settings"].get(name, {}), expectations(addon["objects"]))
        for replaced in addon["replaces"]:
            _forget(replaced)

    def remove(self, name: str) -> None:
        """Removes an unwanted add-on. A CSI driver stays while pods mount its volumes."""
        drivers = [entry.partition("/")[2] for _namespace, entry in recorded(name) if entry.startswith("csidriver/")]
        using = [pod for driver in drivers for pod in self.objects.mounting(driver)]
        if using:
            self.stay.append(
                f"{name[len(PREFIX) :]} stays until these pods end, as it mounts for them: {', '.join(using[:5])}"
            )
            return
        # A definition takes all objects of its kind along, and with them the jobs of users.
        if why := self.instances(name, include_own=False):
            if not self.module.check_mode:
                raise ObjectError(f"{why}. Delete them, then apply again")
            self.stay.append(f"{name[len(PREFIX) :]} {why}")
            return
        if self.module.check_mode:
            self.removed += [entry for namespace, entry in recorded(name) if (namespace, entry) not in self.keep]
            return
        # While its controller runs: only the controller removes the finalizers of these objects.
        self.clear(name)
        self.prune(recorded(name))
        _forget(name)

    def clear(self, name: str) -> None:
        """Objects of ours, of the kinds that an add-on defines, go while it can still let them go."""
        self.removed += [it for it in self.objects.delete_own(definitions(name)) if it not in self.removed]
        if why := self.instances(name, include_own=True):
            raise ObjectError(f"{why}. Apply again when they are gone")

    def instances(self, name: str, *, include_own: bool) -> str:
        """Why an add-on cannot go: objects of the kinds that it defines. Without it nothing would take care of them."""
        left = self.objects.instances(definitions(name), include_own=include_own)
        return f"stays as long as there is {', '.join(left[:5])}{', ...' if left[5:] else ''}" if left else ""

    def prune(self, old: list[tuple[str, str]]) -> None:
        """Deletes recorded objects that no wanted add-on has, the last one first."""
        for namespace, name in reversed(old):
            if (namespace, name) in self.keep:
                continue
            deleted, why = self.objects.delete(namespace, name)
            self.removed += [name] if deleted else []
            self.stay += [why] if why else []


def _forget(record: str) -> None:
    path = os.path.join(ROLES_DIR, record + ".json")
    if os.path.exists(path):
        os.unlink(path)


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "addons": {"type": "list", "elements": "dict", "required": True},
            "wanted": {"type": "list", "elements": "str", "required": True},
            "only": {"type": "list", "elements": "str", "default": []},
            "kept": {"type": "list", "elements": "list", "required": True},
            "settings": {"type": "dict", "default": {}},
            "timeout": {"type": "int", "default": 180},
            "kubeconfig": {"type": "path", "default": ADMIN_CONF},
            "kubectl": {"type": "path", "default": KUBECTL},
        },
        supports_check_mode=True,
    )
    addons = Addons(module)
    diff = addons.run()
    result = {
        "changed": bool(addons.applied or addons.removed),
        "diff": {"prepared": diff},
        "applied": addons.applied,
        "removed": addons.removed,
        "kept": addons.stay,
    }
    if addons.failures:
        module.fail_json(msg="; ".join(addons.failures), evidence=addons.evidence, **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
