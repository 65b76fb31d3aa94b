#!/usr/bin/python
"""Ansible module: programs from the component store, verified, installed once."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_artifacts
short_description: Download, verify and install programs
description:
  - Downloads missing artifacts, checks their SHA-256, and installs binaries or members of archives.
  - Records the artifact of each installed file. Reinstalls changed files, and removes files that an
    archive no longer has.
options:
  artifacts:
    description: What to install.
    type: list
    elements: dict
    required: true
    suboptions:
      name: {description: Name in messages., type: str, required: true}
      version: {description: Version in messages., type: str, default: ""}
      url: {description: URL. file:// URLs name a file on the machine., type: str, required: true}
      sha256: {description: Digest of the download., type: str, required: true}
      kind: {description: Type of the download., type: str, choices: [binary, tar.gz], required: true}
      dest: {description: The file (binary) or the folder (archive) to install to., type: path, required: true}
      strip: {description: Leading path parts to drop from archive members., type: int, default: 0}
  ca:
    description: Certificate authorities of the component store. Default is the trust store of the system.
    type: path
    default: /etc/pai-install/store/ca.pem
  authorities: {description: "The same as text (PEM), instead of a file on the machine.", type: str, default: ""}
  timeout: {description: Seconds without a byte until a download counts as failed., type: int, default: 60}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Install runc
  pai_artifacts:
    artifacts:
      - name: runc
        url: "https://192.0.2.1:5080/v2/files/runc/blobs/sha256:..."
        sha256: "..."
        kind: binary
        dest: /usr/local/sbin/runc
"""
RETURN = r"""
installed: {description: Artifacts that were installed., type: list, elements: str, returned: always}
managed: {description: Expectations for pai_state., type: list, elements: dict, returned: always}
"""

import hashlib
import json
import os
import shutil
import ssl
import stat
import tarfile
import tempfile
import time
import urllib.request
from typing import IO, Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_digests import file_sha256
from ansible.module_utils.pai_managed import STATE_DIR

LEDGER = STATE_DIR + "/artifacts.json"
ATTEMPTS = 4
LARGEST = 2 << 30  # bytes; the largest component has 400 MB
# A download may take this long and one second more for so many bytes that came.
HEAD_START_S = 60.0
SLOWEST = 8 << 10


def load_ledger() -> dict[str, Any]:
    """path of a destination -> {sha256 of the download, files: {path: {sha256, size, mtime_ns}}}."""
    try:
        with open(LEDGER, encoding="utf-8") as handle:
            return dict(json.load(handle))
    except (OSError, ValueError):
        return {}


def save_ledger(ledger: dict[str, Any]) -> None:
    """Writes the ledger in one step."""
    os.makedirs(STATE_DIR, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=STATE_DIR)
    with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
        json.dump(ledger, handle, indent=1)
    os.replace(temporary, LEDGER)


def key(artifact: dict[str, Any]) -> str:
    """Where an artifact stands in the ledger."""
    return f"{artifact['name']} {artifact['dest']}"


def in_place(artifact: dict[str, Any], ledger: dict[str, Any]) -> bool:
    """Whether every file of this very artifact is as it was installed."""
    entry = ledger.get(key(artifact))
    # The digest of the download decides, and not the version: a rebuilt archive may have the same version.
    if not entry or entry["sha256"] != artifact["sha256"]:
        return False
    return all(unchanged(path, seen) for path, seen in entry["files"].items())


def unchanged(path: str, seen: dict[str, Any]) -> bool:
    """Whether a file has the bytes it was installed with and can be executed."""
    try:
        info = os.stat(path)
    except OSError:
        return False
    same = info.st_size == seen["size"] and file_sha256(path) == seen["sha256"]
    return same and stat.S_IMODE(info.st_mode) == 0o755


class Downloads:
    """Downloads with a few attempts. Content with a wrong digest is never installed."""

    def __init__(self, module: AnsibleModule, folder: str) -> None:
        self.module = module
        self.folder = folder

    def fetch(self, artifact: dict[str, Any]) -> str:  # noqa: RET503 - fail_json does not return
        """The path of the verified download."""
        path = os.path.join(self.folder, hashlib.sha256(artifact["url"].encode()).hexdigest())
        problem = ""
        for attempt in range(ATTEMPTS):
            if attempt:
                # A store that restarts for a new certificate answers again within seconds.
                time.sleep(2**attempt)
            try:
                self.copy(artifact["url"], path)
            except (OSError, ValueError) as error:
                problem = str(error)
                continue
            digest = file_sha256(path)
            if digest == artifact["sha256"]:
                return path
            problem = f"its sha256 is {digest} instead of {artifact['sha256']}"
        self.module.fail_json(
            msg=f"cannot get {artifact['name']} {artifact['version']} from {artifact['url']}: {problem}",
            artifact=artifact["name"],
            url=artifact["url"],
        )

    def copy(self, url: str, path: str) -> None:
        """Streams a URL into a file."""
        # Proxies of the environment are for the outside; the component store is a machine of the cluster.
        handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
        if url.startswith("https:"):
            handlers.append(
                urllib.request.HTTPSHandler(context=trust(self.module.params["ca"], self.module.params["authorities"]))
            )
        opener = urllib.request.build_opener(*handlers)
        with opener.open(url, timeout=self.module.params["timeout"]) as answer, open(path, "wb") as handle:
            began, done = time.monotonic(), 0
            # read1 returns what has arrived, so that the limit of speed is checked often.
            while block := answer.read1(1 << 20):
                done += len(block)
                if done > LARGEST:
                    raise OSError(f"longer than {LARGEST} bytes")
                # A timeout per read alone would let a stalling server hold the task for days.
                if time.monotonic() - began > HEAD_START_S + done / SLOWEST:
                    raise OSError(f"slower than {SLOWEST} bytes a second")
                handle.write(block)


def trust(path: str, authorities: str) -> ssl.SSLContext:
    """Returns a TLS context with only the authorities in this text or file, or the system's if roles are used
    without a store.
    """
    if authorities:
        return ssl.create_default_context(cadata=authorities)
    return ssl.create_default_context(cafile=path if os.path.exists(path) else None)


def install(artifact: dict[str, Any], download: str) -> list[str]:
    """Installs the files of a download and returns their paths."""
    if artifact["kind"] == "binary":
        with open(download, "rb") as program:
            put(program, artifact["dest"])
        return [artifact["dest"]]
    paths = []
    with tarfile.open(download, "r:gz") as archive:
        for member in archive:
            parts = [part for part in member.name.split("/") if part not in ("", ".")][artifact["strip"] :]
            # Links and special files of an archive could lead out of the folder.
            if not member.isfile() or not parts or ".." in parts:
                continue
            path = os.path.join(artifact["dest"], *parts)
            source = archive.extractfile(member)
            if source is not None:
                put(source, path)
                paths.append(path)
    return paths


def put(source: IO[bytes], path: str) -> None:
    """Writes an executable beside its destination and lets it take its place: a running one is not disturbed."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    temporary = path + ".pai-new"
    with open(temporary, "wb") as handle:
        shutil.copyfileobj(source, handle, 1 << 20)
    os.chmod(temporary, 0o755)
    # Writing into a running program fails with "text file busy". A rename leaves its old file to it.
    os.replace(temporary, path)


def remove(before: dict[str, Any], ledger: dict[str, Any]) -> None:
    """Deletes files of an earlier version that the new one lacks, unless they were changed."""
    wanted = {path for entry in ledger.values() for path in entry["files"]}
    for path, seen in before.items():
        # A changed file may be one that an administrator put in its place.
        if path not in wanted and os.path.exists(path) and unchanged(path, seen):
            os.remove(path)


def ledger_entry(artifact: dict[str, Any], paths: list[str]) -> dict[str, Any]:
    """Returns the installed files for the comparison in the next run."""
    files = {path: {"sha256": file_sha256(path), "size": os.stat(path).st_size} for path in paths}
    return {"sha256": artifact["sha256"], "version": artifact["version"], "files": files}


def managed(ledger: dict[str, Any], artifacts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Expectations for pai_state."""
    return [
        {"kind": "file", "path": path, "sha256": seen["sha256"], "size": seen["size"], "mode": "0755"}
        for artifact in artifacts
        for path, seen in ledger.get(key(artifact), {"files": {}})["files"].items()
    ]


def main() -> None:
    """Runs the module."""
    artifact = {
        "name": {"type": "str", "required": True},
        "version": {"type": "str", "default": ""},
        "url": {"type": "str", "required": True},
        "sha256": {"type": "str", "required": True},
        "kind": {"type": "str", "choices": ["binary", "tar.gz"], "required": True},
        "dest": {"type": "path", "required": True},
        "strip": {"type": "int", "default": 0},
    }
    module = AnsibleModule(
        argument_spec={
            "artifacts": {"type": "list", "elements": "dict", "required": True, "options": artifact},
            "ca": {"type": "path", "default": "/etc/pai-install/store/ca.pem"},
            "authorities": {"type": "str", "default": ""},
            "timeout": {"type": "int", "default": 60},
        },
        supports_check_mode=True,
    )
    ledger = load_ledger()
    wanted = module.params["artifacts"]
    missing = [entry for entry in wanted if not in_place(entry, ledger)]
    if missing and not module.check_mode:
        os.makedirs(STATE_DIR, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=STATE_DIR) as folder:
            downloads = Downloads(module, folder)
            for entry in missing:
                before = ledger.get(key(entry), {"files": {}})["files"]
                ledger[key(entry)] = ledger_entry(entry, install(entry, downloads.fetch(entry)))
                remove(before, ledger)
                save_ledger(ledger)  # at once: an interrupted run goes on where it stopped
    module.exit_json(
        changed=bool(missing),
        installed=[f"{entry['name']} {entry['version']}".strip() for entry in missing],
        managed=managed(ledger, wanted),
    )


if __name__ == "__main__":
    main()
