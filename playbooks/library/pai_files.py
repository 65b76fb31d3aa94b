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
        description: Regular expressions (multi-line) and the replacement of each match.
        type: list
        elements: dict
        suboptions:
          regexp: {description: What to find., type: str, required: true}
          replacement: {description: Replacement. It must not match again., type: str, required: true}
      merge_json:
        description:
          - Required content of a JSON object. Other content stays.
          - Objects are merged, lists united (of two C(name=value) words the new one counts), other values replaced.
          - Content that an earlier run merged for the same I(owner) is removed if it is no longer required.
          - An empty list or object puts no key there, and leaves one empty that the last of our words is taken out of.
        type: dict
      state: {description: Whether the file is there., type: str, choices: [present, absent], default: present}
      if_there:
        description: Leave a file that does not exist alone, with nothing to look for later.
        type: bool
        default: false
      mode: {description: Permissions. If empty, an existing file keeps its own., type: str, default: ""}
      backup: {description: Keep a file that others wrote beside the new one., type: bool, default: false}
      validate:
        description: Command that validates the new file, with C(%s) for its path. Skipped while it is not installed.
        type: str
      secret: {description: Show no content in diffs., type: bool, default: false}
      live:
        description:
          - Whether programs reload the file automatically. The file is then not in the returned I(paths).
          - With I(merge_json), later drift checks compare only the merged content.
        type: bool
        default: false
      live_keys:
        description:
          - With I(merge_json), keys that the program takes by a reload, and that others write into, too.
          - A change of only these keeps the modification time of the file, so that no unit restarts. Later drift
            checks compare only the merged content.
        type: list
        elements: str
        default: []
  directory_mode:
    description: Mode of folders that the module creates.
    type: str
    default: "0755"
  owner:
    description:
      - Owner of the content, if several roles write to one file. A role removes only its own content.
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
  description: All files in order, except I(live) ones, for I(restart_if_newer) of pai_service.
  type: list
  elements: str
  returned: always
backups:
  description: Changed file and its old copy (empty without one), for files with I(backup).
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
