#!/usr/bin/python
"""Ansible module: members of etcd that come and go."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_etcd
short_description: Require healthy members of etcd before a join, or remove members
description:
  - Runs on a control plane. An unhealthy member fails the task by name, since a join could then cost the quorum.
  - Removes the member of a reinstalled machine, so that the machine can join again.
  - Takes members out one after the other, each only while the others keep the quorum and are well.
options:
  new: {description: Addresses of machines that are about to join., type: list, elements: str, default: []}
  leaving: {description: Addresses of machines that are about to leave., type: list, elements: str, default: []}
  address: {description: "This control plane's address.", type: str, default: ""}
  only_check: {description: "Only say whether members may leave.", type: bool, default: false}
  timeout: {description: Seconds until all members must be healthy., type: int, default: 60}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Check that etcd is ready for one more member
  pai_etcd: {new: [10.0.0.2]}

- name: Take a member out
  pai_etcd: {leaving: [10.0.0.3], address: 10.0.0.1}
"""
RETURN = r"""
members: {description: Names of the members., type: list, elements: str, returned: always}
removed: {description: Members that were removed., type: list, elements: str, returned: always}
"""

import os
import time
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_etcd_members import (
    CERTIFICATE,
    EtcdError,
    Member,
    at,
    in_order,
    join_problem,
    label,
    leave_problem,
    members,
    remove,
    sickness,
)


def look(new: list[str]) -> tuple[list[Member], list[Member], str]:
    """Returns the remaining members, the members of reinstalled machines, and the obstacle to a join."""
    try:
        found = members()
    except EtcdError as error:
        return [], [], f"etcd does not answer: {error}"
    # A reinstalled machine has lost its data. Its old member would count for the quorum and never answer.
    stale = at(found, new)
    staying = [member for member in found if member not in stale]
    sick = {member["id"]: why for member in staying if (why := sickness(member))}
    return staying, stale, join_problem(staying, sick)


def state() -> tuple[list[Member], dict[str, str]]:
    """Returns the members, and the problems of unhealthy ones. Raises EtcdError."""
    found = members()
    return found, {member["id"]: why for member in found if (why := sickness(member))}


def let_go(module: AnsibleModule) -> list[str]:
    """Removes members one after the other, with a check before each. Returns their names."""
    places, own = list(module.params["leaving"]), module.params["address"]
    gone: list[str] = []
    while True:
        # Each removal changes the quorum, so the next one is judged by new answers.
        found, sick = settled(module, places, own)
        removed = in_order(found, sick, places)
        if not removed or module.params["only_check"] or module.check_mode:
            return gone + [label(member) for member in removed]
        drop(module, removed[:1])
        gone.append(label(removed[0]))


def settled(module: AnsibleModule, places: list[str], own: str) -> tuple[list[Member], dict[str, str]]:
    """Waits until the next member may leave and returns the members. Fails the task if none may."""
    deadline = time.monotonic() + module.params["timeout"]
    while True:
        try:
            found, sick = state()
            problem = leave_problem(found, sick, places, own)
        except EtcdError as error:
            problem = f"etcd does not answer: {error}"
        if not problem:
            return found, sick
        if time.monotonic() > deadline:
            module.fail_json(
                msg=f"no control plane may leave etcd now: {problem}",
                remedy="run pai-install status, restore the listed machines, and run the same command again",
            )
        time.sleep(2)


def wait(new: list[str], timeout: int) -> tuple[list[Member], list[Member], str]:
    """Polls until nothing prevents the join, or the timeout is over."""
    deadline = time.monotonic() + timeout
    seen = look(new)
    while seen[2] and time.monotonic() < deadline:
        time.sleep(2)
        seen = look(new)
    return seen


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "new": {"type": "list", "elements": "str", "default": []},
            "leaving": {"type": "list", "elements": "str", "default": []},
            "address": {"type": "str", "default": ""},
            "only_check": {"type": "bool", "default": False},
            "timeout": {"type": "int", "default": 60},
        },
        supports_check_mode=True,
    )
    if module.check_mode and not os.path.exists(CERTIFICATE):
        module.exit_json(changed=False, members=[], removed=[])
    if module.params["leaving"]:
        gone = let_go(module)
        module.exit_json(changed=bool(gone) and not module.params["only_check"], members=[], removed=gone)
    # A member that has just restarted is unhealthy for some seconds.
    staying, stale, problem = wait(module.params["new"], module.params["timeout"])
    if problem:
        module.fail_json(
            msg=f"no control plane may join while an etcd member is unhealthy: {problem}",
            remedy="restore the named machine, or mark it absent and run `kubeadm reset` there, then apply again",
        )
    if not module.check_mode:
        drop(module, stale)
    names: dict[str, Any] = {"members": [label(one) for one in staying], "removed": [label(one) for one in stale]}
    module.exit_json(changed=bool(stale), **names)


def drop(module: AnsibleModule, stale: list[Member]) -> None:
    """Takes the members out."""
    for member in stale:
        problem = refusal(member, module.params["timeout"])
        if problem:
            module.fail_json(msg=f"etcd did not remove its member {label(member)}: {problem}")


def refusal(member: Member, timeout: int) -> str:
    """Removes a member. Returns why etcd refuses, or "".

    etcd needs some seconds to detect that a member is down or has joined, and refuses until then.
    """
    deadline = time.monotonic() + timeout
    while True:
        try:
            remove(member)
        except EtcdError as error:
            if time.monotonic() > deadline:
                return str(error)
        else:
            return ""
        time.sleep(2)


if __name__ == "__main__":
    main()
