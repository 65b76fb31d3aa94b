"""Reverts the records of roles: files, blocks, merged JSON, commented lines.

Each call reports an action, and performs it unless this is a dry run. All actions are idempotent.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Optional

from ansible.module_utils.pai_managed import markers, read_block, sysctl_path
from ansible.module_utils.pai_merging import (
    in_order_of,
    indentation,
    kept_patch,
    patch_path,
    read_object,
    subtract,
)

# A line of the admin's that a role put out of use: "# why (pai-install): the line".
PUT_ASIDE = re.compile(r"^# [^\n]*\(pai-install\): ", re.MULTILINE)
# Folders that a machine has without us; an empty one of any other goes with the last file in it.
STANDARD = frozenset(
    [
        "/", "/etc", "/etc/apt", "/etc/apt/apt.conf.d", "/etc/apt/keyrings", "/etc/apt/preferences.d",
        "/etc/apt/sources.list.d", "/etc/default", "/etc/modprobe.d", "/etc/modules-load.d",
        "/etc/sysctl.d", "/etc/systemd", "/etc/systemd/system", "/opt", "/root", "/usr/local", "/usr/local/bin",
        "/usr/local/lib", "/usr/local/sbin", "/usr/local/share", "/var/lib", "/var/log",
    ]
)  # fmt: skip

Item = Mapping[str, Any]


class Undo:
    """Reverts expectations. check: dry run. files: path -> copy of the original (pai_origins)."""

    def __init__(self, files: Mapping[str, str], *, check: bool) -> None:
        self.files = files
        self.check = check
        self.actions: list[str] = []
        self.changed: set[str] = set()

    def act(self, what: str) -> bool:
        """Records an action and returns whether to perform it."""
        self.actions.append(what)
        return not self.check

    def items(self, expectations: Iterable[Item]) -> None:
        """Takes back all that is in files. Other kinds are not this module's."""
        for item in expectations:
            undo = _UNDO.get(item["kind"])
            # User data survives a reset without --with-data.
            if undo is not None and not item.get("data"):
                undo(self, item)

    def file(self, item: Item) -> None:
        """A whole file: the old one comes back where there was one, else it goes."""
        path = item["path"]
        copy = self.files.get(path, "")
        if copy and os.path.exists(copy):
            self.changed.add(path)
            if self.act(f"gave {path} back"):
                # The copy has owner and mode of the original.
                os.replace(copy, path)
            return
        # A lost copy must not cost the admin the file, so the file stays then.
        if not copy and os.path.lexists(path) and not os.path.isdir(path):
            self.changed.add(path)
            if self.act(f"removed {path}"):
                os.unlink(path)
        if not self.check:
            self.tidy(path)

    def present(self, item: Item) -> None:
        """Something that a role made by other means, where its record says that it is ours."""
        if item.get("ours"):
            self.file(item)

    def block(self, item: Item) -> None:
        """Removes the block between our markers, and a file that we created if it is empty afterwards."""
        text = _text(item["path"])
        if text is None or read_block(text, item["marker"]) is None:
            return
        self.rewrite(item["path"], without_block(text, item["marker"]), "the block of pai-install")

    def lines(self, item: Item) -> None:
        """Lines that were put out of use are in use again."""
        text = _text(item["path"])
        if text is not None and PUT_ASIDE.search(text):
            self.rewrite(item["path"], PUT_ASIDE.sub("", text), "what pai-install put out of use")

    def merged(self, item: Item) -> None:
        """Removes the patch of an owner from a JSON object, except keys of other owners."""
        path, owner = item["path"], item["owner"]
        current, gone = read_object(path), kept_patch(path, owner)
        if current is not None and gone:
            # Two roles write into daemon.json. A key that both set must survive the first of them.
            for other in _other_patches(path, owner):
                gone = subtract(gone, other)
            # A value that the admin changed after us is no longer ours, and stays.
            rest = in_order_of(current, subtract(current, gone))
            if rest != current:
                old = _text(path) or ""
                self.rewrite(path, json.dumps(rest, indent=indentation(old), ensure_ascii=False) + "\n", "our settings")
        if not self.check:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(patch_path(path, owner))

    def rewrite(self, path: str, text: str, what: str) -> None:
        """Writes a file without our content, or deletes a file that we created if it is empty afterwards."""
        self.changed.add(path)
        empty = not text.strip() or text.strip() == "{}"
        if empty and self.files.get(path) == "":
            if self.act(f"removed {path}"):
                os.unlink(path)
                self.tidy(path)
        elif self.act(f"took {what} out of {path}"):
            temporary = path + ".pai-new"
            with open(temporary, "w", encoding="utf-8", errors="surrogateescape", newline="") as handle:
                handle.write(text)
            # copystat leaves the owner out, so chown follows.
            shutil.copystat(path, temporary)
            info = os.stat(path)
            os.chown(temporary, info.st_uid, info.st_gid)
            # Programs that watch the time of the file must see the change.
            os.utime(temporary)
            os.replace(temporary, path)

    def tidy(self, path: str) -> None:
        """Removes folders above a file that are empty now and no machine has without us."""
        folder = os.path.dirname(path)
        while folder not in STANDARD:
            try:
                os.rmdir(folder)
            except FileNotFoundError:
                pass
            except OSError:
                return
            folder = os.path.dirname(folder)

    def copies(self, paths: Iterable[str]) -> None:
        """Deletes copies of files that are unchanged or were removed with a package, including later copies of a known
        file.
        """
        for path in dict.fromkeys([*paths, *self.files]):
            for copy in sorted(glob.glob(glob.escape(path) + "*.pai-backup")):
                # A copy may be the only trace of an admin's settings. It goes only if nothing is lost with it.
                if (path in self.files or _text(path) in (None, _text(copy))) and self.act(f"removed {copy}"):
                    os.unlink(copy)
                    self.tidy(copy)

    def parameters(self, before: Mapping[str, str]) -> None:
        """Kernel parameters have the values that they had before us."""
        for name, value in before.items():
            seen = " ".join((_text(sysctl_path(name)) or "").split())
            if seen and seen != value and self.act(f"set {name} back to {value}"):
                with contextlib.suppress(OSError), open(sysctl_path(name), "w", encoding="ascii") as handle:
                    handle.write(value)


def without_block(text: str, marker: str) -> str:
    """The text without the block between our marker lines."""
    begin, end = markers(marker)
    pattern = rf"^{re.escape(begin)}\n.*?^{re.escape(end)}\n?"
    return re.sub(pattern, "", text, count=1, flags=re.MULTILINE | re.DOTALL)


_UNDO: dict[str, Callable[[Undo, Item], None]] = {
    "file": Undo.file,
    "present": Undo.present,
    "block": Undo.block,
    "nomatch": Undo.lines,
    "merged": Undo.merged,
}


def _text(path: str) -> Optional[str]:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as handle:
            return handle.read()
    except OSError:
        return None


def _other_patches(path: str, owner: str) -> list[dict[str, Any]]:
    own = patch_path(path, owner)
    found = glob.glob(glob.escape(patch_path(path)[: -len(".json")]) + "*.json")
    return [read_object(one) or {} for one in sorted(found) if one != own]
