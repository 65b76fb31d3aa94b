#!/usr/bin/python
"""Ansible module: the state of a set of files in one call."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_files
short_description: Manage a set of files in one task
description:
  - Writes whole files, maintains a marked block or replaces lines in files of others, merges JSON, removes files.
  - The tool's own checker validates a new file before it replaces the old one.
options:
  files:
    description: The files, in order.
    type: list
    elements: dict
    required: true
    suboptions:
      path: {description: Absolute path., type: path, required: true}
      content: {description: The whole content., type: str}
      block: {description: Lines to keep between two marker lines., type: str}
      marker: {description: Words in the marker lines of the block., type: str, default: pai-install}
      replace:
        description: Regular expressions (multi-line) and what takes the place of each match.
        type: list
        elements: dict
        suboptions:
          regexp: {description: What to find., type: str, required: true}
          replacement: {description: What takes its place; must not match again., type: str, required: true}
      merge_json:
        description:
          - What a JSON object must contain; everything else in it is the admin's and stays.
          - Objects are merged, lists united (of two C(name=value) words the new one counts), other values replaced.
          - What an earlier run for the same I(owner) merged and this one no longer names is taken out again.
          - An empty list or object puts no key there, and leaves one empty that the last of our words is taken out of.
        type: dict
      state: {description: Whether the file is there., type: str, choices: [present, absent], default: present}
      if_there:
        description: Leave a file that does not exist alone, with nothing to look for later.
        type: bool
        default: false
      mode: {description: Permissions; an existing file keeps its own when empty., type: str, default: ""}
      backup: {description: Keep a file that others wrote beside the new one., type: bool, default: false}
      validate:
        description: Command that must accept the new file, with C(%s) for its path; skipped while it is not installed.
        type: str
      secret: {description: Show no content in diffs., type: bool, default: false}
      live:
        description:
          - Whether programs notice a change by themselves; the file is left out of the returned I(paths).
          - With I(merge_json), nothing in the file but what was merged is looked for later.
        type: bool
        default: false
      live_keys:
        description:
          - With I(merge_json), keys that the program takes by a reload, and that others write into, too.
          - A change of these alone keeps the file's time of modification, so that no unit restarts for it. Of their
            content nothing but what was merged is looked for later.
        type: list
        elements: str
        default: []
  directory_mode:
    description: Mode of folders that the module creates.
    type: str
    default: "0755"
  owner:
    description:
      - Whose files these are, where several write into one; each takes out only what it merged itself.
      - Whole files that an earlier call for the same owner wrote, and this one no longer names, are removed, and
        folders that are empty then.
    type: str
    default: ""
author: [pai-install]
"""
EXAMPLES = r"""
- name: Configure the daemon
  pai_files:
    files:
      - {path: /etc/example.conf, content: "a = 1\n", mode: "0644", validate: "example --check %s"}
"""
RETURN = r"""
changed_paths: {description: Files that were changed., type: list, elements: str, returned: always}
paths:
  description: All the files in order, changed or not, but I(live) ones; for I(restart_if_newer) of pai_service.
  type: list
  elements: str
  returned: always
backups:
  description: Changed file and its old copy, empty when there was none; files with I(backup) only.
  type: dict
  returned: always
managed: {description: Expectations for pai_state., type: list, elements: dict, returned: always}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_file_set import FILE_OPTIONS, FileSet


def main() -> None:
    """Runs the module."""
    options = {**FILE_OPTIONS, "files": {**FILE_OPTIONS["files"], "required": True}}
    module = AnsibleModule(argument_spec=options, supports_check_mode=True)
    files = FileSet(module)
    files.apply_all()
    module.exit_json(changed=bool(files.changed), managed=files.managed, **files.result())


if __name__ == "__main__":
    main()
