"""The desired state of a machine, and its comparison with the current state.

Every module that changes a machine returns `managed`: a list of expectations. `pai_state` keeps them on the machine at
the end of a role; `pai_facts` checks them against the machine. So a verdict always comes from an observation, never
from the record.

An expectation is a dict with `kind` and the fields of this kind:

- file: path, sha256, mode. The owner is root. `restarts`: the program that restarts, if no unit here does.
- merged: path, owner, live_keys, sha256, mode. JSON with the merged patch of an owner (pai_merging).
- folder: path. It belongs to root, and not everybody writes to it.
- private: path, mode. It belongs to root, without a permission beyond the mode.
- block: path, marker, sha256. The block stands between two marker lines.
- absent: path. There is no such file.
- present: path, filled, ours, content. filled: not empty. ours: a role creates and removes it. content: a folder of
  user data, which survives a removal.
- quota: path, size, each. Project quota of a folder, in bytes. each: of every subfolder (pai_quota).
- nomatch: path, regexp. No line matches.
- unit: name, enabled, active, reads. A systemd unit, which restarts when a file of `reads` changes.
- package: name. A Debian package is installed.
- sysctl: name, value. A kernel parameter.
- noswap: Swap is off.
- image: name, digest. containerd has the image, under its tag and by its digest, pinned.
- object: name, namespace, version. A Kubernetes object (kind/name), seen from a control plane.
- node: name, labels, taints. The node of this machine, seen with its kubelet's login.
"""

from __future__ import annotations

import json
import os
import re
import stat
import tempfile
import time
from collections.abc import Iterable
from typing import Any, Optional

from ansible.module_utils.pai_digests import file_sha256, sha256
from ansible.module_utils.pai_images import image_problems
from ansible.module_utils.pai_kubectl import KUBELET_CONF, Kubectl, KubectlError
from ansible.module_utils.pai_machine import command
from ansible.module_utils.pai_merging import merged_problem
from ansible.module_utils.pai_ownership import foreign_owner, open_folder
from ansible.module_utils.pai_quota import problem as quota_problem

STATE_DIR = "/var/lib/pai-install"
ROLES_DIR = STATE_DIR + "/roles"
# kinds of objects whose pods are replaced when the object changes
ROLLED_OUT = ("daemonset", "deployment", "statefulset")
QUESTION_S = 60
# when a unit began to start, and when its state last changed: a reload changes it, too
STARTED, CHANGED = "InactiveExitTimestampMonotonic", "StateChangeTimestampMonotonic"
# the version of an object that is there until what uses it ends: it is no longer what it should be
GOING = "being deleted"


def markers(marker: str) -> tuple[str, str]:
    """The two comment lines around a block."""
    return f"# BEGIN {marker}", f"# END {marker}"


def read_block(text: str, marker: str) -> str | None:
    """Returns the lines between the markers, or None if the markers are missing."""
    begin, end = markers(marker)
    found = re.search(rf"^{re.escape(begin)}\n(.*?)^{re.escape(end)}$", text, re.MULTILINE | re.DOTALL)
    return found.group(1) if found else None


def write_record(
    name: str, settings: dict[str, Any], expected: list[dict[str, Any]], notes: Optional[dict[str, str]] = None
) -> str:
    """Writes the record of a role on the machine atomically and returns its path.

    Only root may read it, because an attacker could guess weak passwords from digests of settings.
    """
    path = os.path.join(ROLES_DIR, name + ".json")
    os.makedirs(ROLES_DIR, mode=0o700, exist_ok=True)
    # A rename within one folder is atomic, so a power cut leaves the old record or the new one, never half of one.
    descriptor, temporary = tempfile.mkstemp(dir=ROLES_DIR)
    with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
        record = {"schema_version": 1, "settings": settings, "managed": expected, **({"notes": notes} if notes else {})}
        json.dump(record, handle, indent=1)
        handle.flush()
        os.fsync(handle.fileno())
    os.chmod(temporary, 0o600)
    os.replace(temporary, path)
    return path


def drift(expectations: Iterable[dict[str, Any]]) -> list[str]:
    """One sentence per expectation that no longer holds."""
    return [problem for _item, problem in drifted(expectations)]


def drifted(expectations: Iterable[dict[str, Any]], api_answers: bool = True) -> list[tuple[dict[str, Any], str]]:
    """The expectations that no longer hold, each with a sentence.

    api_answers: False if the API server is known not to respond. It is not asked then.
    """
    expected = list(expectations)
    units = unit_states([item["name"] for item in expected if item["kind"] == "unit"])
    packages = _installed([item["name"] for item in expected if item["kind"] == "package"])
    # One question for all units, packages, or objects: a process for each of them would dominate a run without changes.
    problems = _object_problems([item for item in expected if item["kind"] == "object"], api_answers)
    problems += image_problems([item for item in expected if item["kind"] == "image"])
    for item in expected:
        if item["kind"] in ("object", "image"):
            continue
        if item["kind"] == "unit":
            problem = _unit_problem(item, units.get(item["name"], {}))
        elif item["kind"] == "package":
            problem = "" if item["name"] in packages else f"package {item['name']} is not installed"
        else:
            problem = _CHECKS[item["kind"]](item)
        if problem:
            problems.append((item, problem))
    return problems


def readers(expectations: Iterable[dict[str, Any]], paths: set[str] | None = None) -> list[str]:
    """Returns units and static pods that restart when one of the files changes. Without `paths`, also pods of the
    objects.
    """
    found = [name for item in expectations for name in _readers_of(item, paths)]
    return list(dict.fromkeys(found))


def _readers_of(item: dict[str, Any], paths: set[str] | None) -> list[str]:
    if item["kind"] == "unit":
        # also one that did not have to run yet when it was recorded, as the kubelet before its machine joined
        reads = item.get("reads")
        return [item["name"]] if reads and (paths is None or paths.intersection(reads)) else []
    if item.get("restarts"):
        return [item["restarts"]] if paths is None or item["path"] in paths else []
    has_pods = item["kind"] == "object" and item["name"].partition("/")[0] in ROLLED_OUT
    return [f"the pods of {item['name']}"] if has_pods and paths is None else []


def restarts(expectations: Iterable[dict[str, Any]], lost: Iterable[dict[str, Any]]) -> list[str]:
    """Returns units and static pods that restart on the repair of the lost expectations."""
    return readers(expectations, {item["path"] for item in lost if "path" in item})


def _read(path: str) -> str | None:
    try:
        # Files of an admin may contain Latin-1. These bytes come back unchanged when a file is written again.
        with open(path, encoding="utf-8", errors="surrogateescape") as handle:
            return handle.read()
    except OSError:
        return None


def _check_file(item: dict[str, Any]) -> str:
    path = item["path"]
    try:
        info = os.stat(path)
    except OSError:
        return f"{path} is missing"
    if not stat.S_ISREG(info.st_mode):
        return f"{path} is not a file"
    # A size that differs saves reading a large file.
    if info.st_size != item.get("size", info.st_size) or file_sha256(path) != item["sha256"]:
        return f"{path} was changed by hand"
    return _other_mode(path, info, item["mode"])


def _check_merged(item: dict[str, Any]) -> str:
    path = item["path"]
    try:
        info = os.stat(path)
    except OSError:
        return f"{path} is missing"
    return merged_problem(item) or _other_mode(path, info, item["mode"])


def _other_mode(path: str, info: os.stat_result, wanted: str) -> str:
    mode = f"{stat.S_IMODE(info.st_mode):04o}"
    return foreign_owner(path) if mode == wanted else f"{path} has mode {mode} instead of {wanted}"


def too_open(path: str, mode: str) -> str:
    """Returns the problem with owner or permissions of a file or folder, or "" if there is none or the file is missing.

    mode: permission limit (octal). For a symbolic link, the target is checked.
    """
    try:
        info = os.stat(path)
    except OSError:
        return ""
    seen = stat.S_IMODE(info.st_mode)
    if seen & ~int(mode, 8):
        return f"{path} has mode {seen:04o}, more than {mode}"
    return "" if (info.st_uid, info.st_gid) == (0, 0) else f"{path} belongs to {info.st_uid}:{info.st_gid}, not to root"


def _check_private(item: dict[str, Any]) -> str:
    return too_open(item["path"], item["mode"])


def _check_block(item: dict[str, Any]) -> str:
    block = read_block(_read(item["path"]) or "", item["marker"])
    if block is None:
        return f"the block of pai-install in {item['path']} is missing"
    # Lines outside of the block belong to the admin, so only the block has a digest.
    same = sha256(block.encode(errors="surrogateescape")) == item["sha256"]
    return "" if same else f"the block of pai-install in {item['path']} was changed by hand"


def _check_absent(item: dict[str, Any]) -> str:
    # A broken symbolic link counts as well: a program may follow it once its target exists.
    return f"{item['path']} is back" if os.path.lexists(item["path"]) else ""


def _check_present(item: dict[str, Any]) -> str:
    if not os.path.lexists(item["path"]):
        return f"{item['path']} is missing"
    if not item.get("filled"):
        return ""
    if not os.path.isfile(item["path"]):
        return f"{item['path']} is not a file"
    return "" if os.path.getsize(item["path"]) else f"{item['path']} is empty"


def _check_nomatch(item: dict[str, Any]) -> str:
    found = re.search(item["regexp"], _read(item["path"]) or "", re.MULTILINE)
    return f"{item['path']} has the line {found.group(0)!r} again" if found else ""


def _check_sysctl(item: dict[str, Any]) -> str:
    seen = _read(sysctl_path(item["name"]))
    # The kernel separates several numbers with tabs, and a site writes spaces.
    value = " ".join((seen or "").split())
    return "" if value == item["value"] else f"{item['name']} is {value or 'missing'} instead of {item['value']}"


def _check_noswap(_item: dict[str, Any]) -> str:
    lines = (_read("/proc/swaps") or "").splitlines()[1:]
    return f"swap is on: {lines[0].split()[0]}" if lines else ""


def _check_node(item: dict[str, Any]) -> str:
    try:
        # A kubelet may read its own node only. So no administrator's kubeconfig is needed on a worker.
        node = Kubectl(KUBELET_CONF).get("node", item["name"], timeout_s=10)
    except KubectlError:
        return f"node {item['name']} cannot be seen in the cluster"
    labels = node["metadata"].get("labels", {})
    # Other labels and taints of the node belong to administrators and controllers.
    lacking = [f"label {key}={value}" for key, value in item["labels"].items() if labels.get(key) != value]
    taints = taint_words(node["spec"].get("taints", []))
    lacking += [f"taint {word}" for word in item["taints"] if word not in taints]
    return f"node {item['name']} lacks {', '.join(lacking)}" if lacking else ""


def taint_words(taints: list[dict[str, str]]) -> list[str]:
    """Taints as kubectl writes them: key[=value]:Effect."""
    return [f"{it['key']}{'=' + it['value'] if it.get('value') else ''}:{it['effect']}" for it in taints]


_CHECKS = {
    "file": _check_file,
    "merged": _check_merged,
    "private": _check_private,
    "folder": lambda item: open_folder(item["path"]),
    "block": _check_block,
    "absent": _check_absent,
    "present": _check_present,
    "quota": quota_problem,
    "nomatch": _check_nomatch,
    "sysctl": _check_sysctl,
    "noswap": _check_noswap,
    "node": _check_node,
}


def sysctl_path(name: str) -> str:
    """Returns the file of a kernel parameter. A slash in a name is a dot in the interface name."""
    return "/proc/sys/" + "/".join(part.replace("/", ".") for part in name.split("."))


def _unit_problem(item: dict[str, Any], seen: dict[str, str]) -> str:
    name = item["name"]
    if item["active"] and seen.get("ActiveState") != "active":
        return f"{name} is {seen.get('ActiveState') or 'missing'} instead of active"
    # A static unit has no [Install] section, so systemd never calls it enabled.
    enabled = seen.get("UnitFileState") in ("enabled", "enabled-runtime", "static", "alias", "generated")
    if item["enabled"] and not enabled:
        return f"{name} is {seen.get('UnitFileState') or 'not there'} instead of enabled"
    return ""


def unit_state(name: str) -> dict[str, str]:
    """Returns properties of a unit, such as ActiveState and UnitFileState, or {} if systemd does not respond."""
    return unit_states([name]).get(name, {})


def newer_than_start(paths: list[str], state: dict[str, str]) -> list[str]:
    """Those of the files that were written after the unit began to start."""
    return _newer(paths, state.get(STARTED, ""))


def newer_than_reload(paths: list[str], state: dict[str, str]) -> list[str]:
    """Those of the files that were written after the unit last started or reloaded."""
    return _newer(paths, state.get(CHANGED, ""))


def _newer(paths: list[str], monotonic_us: str) -> list[str]:
    # systemd tells monotonic time, which a step of the wall clock does not change. Files have wall-clock times.
    moment = time.time() - (time.clock_gettime(time.CLOCK_MONOTONIC) - int(monotonic_us or 0) / 1e6)
    return [path for path in paths if os.path.exists(path) and os.stat(path).st_mtime > moment]


def unit_states(names: list[str]) -> dict[str, dict[str, str]]:
    """unit_state of several units with one question."""
    if not names:
        return {}
    names_of = ("Id", "ActiveState", "SubState", "UnitFileState", "LoadState", "NeedDaemonReload", "FragmentPath")
    properties = ",".join([*names_of, STARTED, CHANGED])
    shown = command(["systemctl", "show", f"--property={properties}", *names], QUESTION_S)[1]
    blocks = [dict(line.split("=", 1) for line in block.splitlines() if "=" in line) for block in shown.split("\n\n")]
    # systemctl answers in the order asked; Id may be another name of the unit (an alias)
    return dict(zip(names, (block for block in blocks if block)))


def _installed(names: list[str]) -> set[str]:
    if not names:
        return set()
    # A removed package with its settings left is known to dpkg as well, with another status.
    shown = command(["dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\n", *names], QUESTION_S)[1]
    return {line.split()[0] for line in shown.splitlines() if line.endswith(" installed")}


def object_versions(objects: list[dict[str, Any]]) -> dict[tuple[str, str], str]:
    """Returns (namespace, kind/name) -> digest of the fields that we manage. Missing objects are omitted.

    The API server tracks the manager of each field and moves a field to another manager that changes it. Fields of
    controllers (status, certificates, defaults) do not change the digest.
    """
    found = {}
    # kubectl reads objects of one namespace per call.
    by_namespace: dict[str, list[str]] = {}
    for entry in objects:
        by_namespace.setdefault(entry["namespace"], []).append(entry["name"])
    path = '{.metadata.managedFields[?(@.manager=="pai-install")].fieldsV1}'
    line = "{.kind}/{.metadata.name} {.metadata.deletionTimestamp} " + path + "{'\\n'}"
    columns = "jsonpath={range .items[*]}" + line + "{end}"
    for namespace, names in by_namespace.items():
        where = [f"--namespace={namespace}"] if namespace else []
        # two names at least: kubectl answers one with the object itself, not with a list
        words = [*where, "get", "--ignore-not-found", "--output", columns, *names, names[0]]
        for line in Kubectl().call(*words, timeout_s=10).out.splitlines():
            name, deleted, fields = (*line.split(" ", 2), "", "")[:3]
            version = sha256(fields.encode())[:16] if fields else "not ours"
            # The record has kinds in lower case, and the API server answers with its own spelling.
            found[(namespace, name.lower())] = GOING if deleted else version
    return found


def _object_problems(expected: list[dict[str, Any]], api_answers: bool) -> list[tuple[dict[str, Any], str]]:
    seen = object_versions(expected) if api_answers else {}
    problems = []
    for item in expected:
        version = seen.get((item["namespace"], item["name"].lower()))
        where = f" in {item['namespace']}" if item["namespace"] else ""
        # This may also be an API server that did not answer, so the sentence does not say that the object is missing.
        if version is None:
            problems.append((item, f"{item['name']}{where} cannot be seen in the cluster"))
        elif version == GOING:
            problems.append((item, f"{item['name']}{where} is being deleted"))
        elif version != item["version"]:
            problems.append((item, f"{item['name']}{where} was changed by hand"))
    return problems
