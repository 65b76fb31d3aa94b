"""Sets of files that one call writes: whole, by blocks, by replacement, by merging.

The options of an item are those of `files` in the module pai_files.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import shlex
import shutil
import stat
import tempfile
import time
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_digests import sha256
from ansible.module_utils.pai_managed import STATE_DIR, markers, read_block
from ansible.module_utils.pai_merging import digest_of_rest, keep_patch, merged_text, read_object
from ansible.module_utils.pai_origins import note

_RULE = {"regexp": {"type": "str", "required": True}, "replacement": {"type": "str", "required": True}}
_ITEM = {
    "path": {"type": "path", "required": True},
    "content": {"type": "str"},
    "block": {"type": "str"},
    "marker": {"type": "str", "default": "pai-install"},
    "replace": {"type": "list", "elements": "dict", "options": _RULE},
    "merge_json": {"type": "dict"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "mode": {"type": "str", "default": ""},
    "backup": {"type": "bool", "default": False},
    "validate": {"type": "str"},
    "secret": {"type": "bool", "default": False},
    "if_there": {"type": "bool", "default": False},
    "live": {"type": "bool", "default": False},
    "live_keys": {"type": "list", "elements": "str", "default": []},
}
# the options of a module that manages files, for its argument_spec
FILE_OPTIONS: dict[str, dict[str, Any]] = {
    "files": {
        "type": "list",
        "elements": "dict",
        "options": _ITEM,
        "mutually_exclusive": [("content", "block", "merge_json"), ("content", "replace", "merge_json")],
    },
    "directory_mode": {"type": "str", "default": "0755"},
    "owner": {"type": "str", "default": ""},
}
FILES_DIR = STATE_DIR + "/files"


def with_block(text: str, block: str, marker: str) -> str:
    """`text` with exactly one block of that marker, where it was or at the end."""
    begin, end = markers(marker)
    body = block if block.endswith("\n") or not block else block + "\n"
    wanted = f"{begin}\n{body}{end}"
    if read_block(text, marker) is not None:
        pattern = rf"^{re.escape(begin)}\n.*?^{re.escape(end)}$"
        # A function in place of a text: re.sub would interpret backslashes of the block.
        return re.sub(pattern, lambda _match: wanted, text, count=1, flags=re.MULTILINE | re.DOTALL)
    if text and not text.endswith("\n"):
        text += "\n"
    return f"{text}{wanted}\n"


def wanted_text(item: dict[str, Any], owner: str, old: str | None) -> str:
    """Returns the desired content of a file, from its current content."""
    if item["content"] is not None:
        return str(item["content"])
    if item["merge_json"] is not None:
        return merged_text(item["path"], owner, old, item["merge_json"])
    text = old or ""
    for rule in item["replace"] or ():
        text = re.sub(rule["regexp"], rule["replacement"], text, flags=re.MULTILINE)
    if item["block"] is not None:
        text = with_block(text, item["block"], item["marker"])
    return text


def shared(item: dict[str, Any]) -> bool:
    """Whether others write into the file, too, and their changes are no drift."""
    return item["merge_json"] is not None and bool(item["live"] or item["live_keys"])


def stays_live(item: dict[str, Any], old: str | None, text: str) -> bool:
    """Returns whether its program reloads the changes of the file, so that they need no restart."""
    if old is None or not shared(item):
        return False
    if item["live"]:
        return True
    # A change of live keys alone needs a reload only. Any other change needs a restart.
    before, after = (json.loads(content or "{}") for content in (old.strip(), text))
    return digest_of_rest(before, item["live_keys"]) == digest_of_rest(after, item["live_keys"])


def expectations(item: dict[str, Any], owner: str, text: str, mode: str) -> list[dict[str, Any]]:
    """Returns the expectations for drift detection of the file."""
    path = item["path"]
    if item["state"] == "absent":
        # A file that comes back is drift, too: programs would read it again.
        return [{"kind": "absent", "path": path}]
    if shared(item):
        rest = "" if item["live"] else digest_of_rest(json.loads(text), item["live_keys"])
        words = {"path": path, "owner": owner, "live_keys": item["live_keys"], "sha256": rest, "mode": mode}
        return [{"kind": "merged", **words}]
    if item["content"] is not None or item["merge_json"] is not None:
        data = text.encode(errors="surrogateescape")
        return [{"kind": "file", "path": path, "sha256": sha256(data), "size": len(data), "mode": mode}]
    found = [{"kind": "nomatch", "path": path, "regexp": rule["regexp"]} for rule in item["replace"] or ()]
    if item["block"] is not None:
        body = read_block(text, item["marker"]) or ""
        found.append(
            {
                "kind": "block",
                "path": path,
                "marker": item["marker"],
                "sha256": sha256(body.encode(errors="surrogateescape")),
            }
        )
    return found


def free_name(stem: str) -> str:
    """Returns an unused name for a copy. Earlier copies of the same second stay."""
    names = (f"{stem}{f'-{number}' if number else ''}.pai-backup" for number in itertools.count())
    return next(name for name in names if not os.path.lexists(name))


class FileSet:
    """Applies the items of a module one after the other and keeps the results."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.owner: str = module.params["owner"]
        self.changed: list[str] = []
        self.backups: dict[str, str] = {}
        self.managed: list[dict[str, Any]] = []
        self.diffs: list[dict[str, str]] = []

    @property
    def paths(self) -> list[str]:
        """Returns all the files but `live` ones, changed or not: units that are older restart."""
        return [item["path"] for item in self.module.params["files"] if not item["live"]]

    def result(self) -> dict[str, Any]:
        """Returns the values of the module's result, as pai_files documents them."""
        words = {"changed_paths": self.changed, "paths": self.paths, "backups": self.backups}
        return {**words, "diff": self.diffs}

    def apply_all(self) -> None:
        """Brings all files to their state, and removes those that the owner no longer names."""
        for item in self.module.params["files"]:
            self.apply(item)
        self.forget()

    def apply(self, item: dict[str, Any]) -> None:
        """Brings one file to its state."""
        old = self.read(item["path"])
        if item["if_there"] and old is None:
            return
        if item["state"] == "absent":
            self.remove(item, old)
        # Lines can only be replaced in a file that exists. An empty new file would hide the default of a package.
        elif old is not None or any(item[form] is not None for form in ("content", "block", "merge_json")):
            self.write(item, old)  # else: only replacements, and nothing to replace in

    def remove(self, item: dict[str, Any], old: str | None) -> None:
        """Takes the file away."""
        self.managed += expectations(item, self.owner, "", "")
        if old is None and not os.path.lexists(item["path"]):
            return
        self.note(item, old or "", "")
        if not self.module.check_mode:
            self.keep_backup(item)
            os.unlink(item["path"])

    def write(self, item: dict[str, Any], old: str | None) -> None:
        """Gives the file its content and mode."""
        path = item["path"]
        try:
            text = wanted_text(item, self.owner, old)
        except ValueError as error:
            self.module.fail_json(msg=f"{path} was not changed: {error}", path=path)
        mode = self.mode(item, old)
        self.managed += expectations(item, self.owner, text, mode)
        if old != text:
            self.note(item, old or "", text)
            if not self.module.check_mode:
                self.replace(item, text, mode, keep_time=stays_live(item, old, text))
        elif self.current_mode(path) != mode:
            self.changed.append(path)
            if not self.module.check_mode:
                os.chmod(path, int(mode, 8))
        if item["merge_json"] is not None and not self.module.check_mode:
            keep_patch(path, self.owner, item["merge_json"])

    def read(self, path: str) -> str | None:
        """Returns the text of a file, including bytes that are not UTF-8, or None if it is missing."""
        try:
            # newline="" keeps Windows line ends of an admin's file as they are.
            with open(path, encoding="utf-8", errors="surrogateescape", newline="") as handle:
                return handle.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            self.module.fail_json(msg=f"cannot read {path}: {error}")

    def current_mode(self, path: str) -> str:
        """Octal permissions, four digits."""
        return f"{stat.S_IMODE(os.stat(path).st_mode):04o}"

    def mode(self, item: dict[str, Any], old: str | None) -> str:
        """The mode the file should have: the one given, else its own, else 0644."""
        if item["mode"]:
            return f"{int(item['mode'], 8):04o}"
        return "0644" if old is None else self.current_mode(item["path"])

    def note(self, item: dict[str, Any], before: str, after: str) -> None:
        """Keeps the change and its diff."""
        path = item["path"]
        self.changed.append(path)
        # A diff with NUL bytes would end up in the journal and the report.
        if "\0" in before:
            before = "(binary content)\n"
        if item["secret"]:
            before, after = "(secret)\n" if before else "", "(secret, changed)\n"
        self.diffs.append({"before": before, "after": after, "before_header": path, "after_header": path})

    def keep_backup(self, item: dict[str, Any]) -> None:
        """Copies the old file beside itself, for people and for a rollback."""
        path = item["path"]
        # A copy of our own last version would hide the admin's original.
        if not item["backup"] or path in self.written_before():
            if item["content"] is None and item["state"] == "present" and not os.path.exists(path):
                note("files", path, "")
            return
        self.backups[path] = ""
        if os.path.exists(path):
            copy = free_name(f"{path}.{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}")
            # preserved_copy keeps owner, mode, and SELinux context, so that a rollback is exact.
            self.module.preserved_copy(path, copy)
            self.backups[path] = copy
        note("files", path, self.backups[path])

    def written_before(self) -> list[str]:
        """The whole files that an earlier call for the same owner wrote: none of an admin's, so no copy is kept."""
        if not self.owner:
            return []
        return list((read_object(os.path.join(FILES_DIR, f"{self.owner}.json")) or {}).get("paths", []))

    def forget(self) -> None:
        """Removes the whole files that an earlier call for the same owner wrote and this one does not name."""
        if not self.owner:
            return
        kept = os.path.join(FILES_DIR, f"{self.owner}.json")
        items = self.module.params["files"]
        named = {item["path"] for item in items}
        for path in (read_object(kept) or {}).get("paths", []):
            if path not in named and os.path.isfile(path):
                self.changed.append(path)
                if not self.module.check_mode:
                    os.unlink(path)
                    # The folder of a registry goes with its last file, unless an admin put another file there.
                    with contextlib.suppress(OSError):  # not empty
                        os.rmdir(os.path.dirname(path))
        if not self.module.check_mode:
            written = [item["path"] for item in items if item["content"] is not None and item["state"] == "present"]
            os.makedirs(FILES_DIR, mode=0o700, exist_ok=True)
            # The list is written last: a killed run then removes obsolete files again the next time.
            with open(kept + ".new", "w", encoding="utf-8") as handle:
                json.dump({"paths": written}, handle)
            os.replace(kept + ".new", kept)

    def replace(self, item: dict[str, Any], text: str, mode: str, *, keep_time: bool) -> None:
        """Writes a temporary file, validates it, and replaces the file with it.

        keep_time: keep the modification time. A unit restarts for a file newer than its start. A reloaded change must
        not cause this later, and a pending restart for an earlier change stays pending.
        """
        path = item["path"]
        folder = os.path.dirname(path)
        if not os.path.isdir(folder):
            os.makedirs(folder, mode=int(self.module.params["directory_mode"], 8))
        # In the folder of the file: a rename across file systems is not atomic.
        descriptor, temporary = tempfile.mkstemp(prefix=".pai-", suffix=os.path.basename(path), dir=folder)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape", newline="") as handle:
                handle.write(text)
                handle.flush()
                # Without it, a power cut after the rename could leave an empty file.
                os.fsync(handle.fileno())
            # The mode is set before the rename, so that a secret is never readable under its name.
            os.chmod(temporary, int(mode, 8))
            if keep_time:
                info = os.stat(path)
                os.utime(temporary, ns=(info.st_atime_ns, info.st_mtime_ns))
            # A program that restarts with a wrong file is down. So its own checker judges the file before it is in
            # place.
            self.validate(item, temporary)
            self.keep_backup(item)
            os.replace(temporary, path)
        finally:
            if os.path.exists(temporary):
                os.unlink(temporary)

    def validate(self, item: dict[str, Any], temporary: str) -> None:
        """Stops the task, with the old file untouched, when the checker does not accept the new one."""
        if not item["validate"]:
            return
        argv = [word.replace("%s", temporary) for word in shlex.split(item["validate"])]
        if shutil.which(argv[0]) is None:
            return  # the tool comes later in the same role
        status, out, err = self.module.run_command(argv)
        if status != 0:
            reason = (err or out).strip()
            message = f"{item['path']} was not changed: {argv[0]} does not accept the new content: {reason}"
            self.module.fail_json(msg=message, path=item["path"])
