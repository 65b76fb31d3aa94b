#!/usr/bin/python
"""Ansible module: NFS servers answer, and serve folders to this machine."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_nfs_check
short_description: Ask NFS servers for folders, without a mount
description:
  - Fails with the path of each folder if its server does not answer within seconds, or does not export it to this
    machine.
  - A server that speaks no NFS version 4.0, or wants Kerberos, is only known to answer. Changes nothing.
options:
  exports: {description: "Folders, each with server, path and port.", type: list, elements: dict, required: true}
  known: {description: Results of an earlier run, not requested again., type: list, elements: dict, default: []}
  places: {description: "SERVER:PATH -> where the site's files say so.", type: dict, default: {}}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Ask the servers of new storages
  pai_nfs_check:
    exports: [{server: nas, path: /export/data, port: 2049}]
"""
RETURN = r"""
asked: {description: "SERVER:PATH -> its answer.", type: dict, returned: always}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_nfs import MISSING, SILENT, exports

SAYS = {SILENT: "does not answer", MISSING: "does not serve it to this machine"}


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "exports": {"type": "list", "elements": "dict", "required": True},
            "known": {"type": "list", "elements": "dict", "default": []},
            "places": {"type": "dict", "default": {}},
        },
        supports_check_mode=True,
    )
    given = module.params
    new = [entry for entry in given["exports"] if entry not in given["known"]]
    answers = {f"{entry['server']}:{entry['path']}": answer for entry, answer in zip(new, exports(new))}
    wrong = {name: answer for name, answer in answers.items() if answer["answer"] in SAYS}
    if wrong:
        lines = [
            f"{given['places'].get(name, 'storages')}: {name}: the server {SAYS[answer['answer']]} ({answer['why']})"
            for name, answer in wrong.items()
        ]
        module.fail_json(msg="storages cannot be mounted: " + "; ".join(lines), asked=answers)
    module.exit_json(changed=False, asked=answers)


if __name__ == "__main__":
    main()
