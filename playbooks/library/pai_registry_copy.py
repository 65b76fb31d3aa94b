#!/usr/bin/python
"""Ansible module: copy the content of a cache between places while it serves."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_registry_copy
short_description: Copy the content of the registry cache between folders of the machine and Azure
description:
  - Copies missing content to the target, verifies the digest of each blob, and deletes nothing.
  - Ends after I(seconds) and returns I(done). The next call continues.
  - Fails before the copy if a folder lacks space or Azure rejects the request.
options:
  source: &place
    description: Where the content is now.
    type: dict
    required: true
    suboptions:
      folder: {description: Folder of this machine. Empty for Azure., type: str, default: ""}
      account: {description: Storage account., type: str, default: ""}
      access_key: {description: Its key., type: str, default: ""}
      container: {description: Container., type: str, default: ""}
      endpoint: {description: "URL of the blob service. Empty for the service of Azure.", type: str, default: ""}
  target: {<<: *place, description: Where it is copied to.}
  upstreams: {description: Registries with content to copy., type: list, elements: str, required: true}
  in_use:
    description: Whether the cache uses the target already. Existing content is then not replaced.
    type: bool
    default: false
  keep_hours: {description: Hours until copied content expires., type: int, default: 720}
  seconds: {description: When to end where more is left., type: int, default: 60}
  places: {description: "Setting of the site -> FILE:LINE:COLUMN, for messages.", type: dict, default: {}}
  proxy: {description: "Proxy towards Azure: http, https, no_proxy.", type: dict, default: {}}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Copy the content
  pai_registry_copy:
    source: {folder: /var/lib/registry}
    target: {folder: /data/registry}
    upstreams: [docker.io]
"""
RETURN = r"""
done: {description: Whether the target has everything., type: bool, returned: always}
findings: {description: One verdict per upstream., type: list, elements: dict, returned: always}
"""

import concurrent.futures
import errno
import json
import os
import time
from collections.abc import Iterator
from typing import Any, NamedTuple, Optional

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_blob import AZURE_OPTIONS, use_proxy, wrong_account
from ansible.module_utils.pai_content import (
    SCHEDULE,
    SpoiledError,
    Store,
    checked,
    is_content,
    may_change,
    rank,
    schedule,
    store,
    title,
)
from ansible.module_utils.pai_finding import own_finding
from ansible.module_utils.pai_json import parse
from ansible.module_utils.pai_registry import RegistryError

THREADS = 8
FULL = 0.95  # of what a disk has free; the rest is the machine's own
TIME = "%Y-%m-%dT%H:%M:%SZ"


class Task(NamedTuple):
    """One upstream's content. deadline: of the monotonic clock."""

    upstream: str
    source: Store
    target: Store
    in_use: bool
    deadline: float


class Seen(NamedTuple):
    """The content of both places. left: path -> bytes, of content to copy."""

    all: dict[str, int]
    left: dict[str, int]


def look(task: Task) -> Seen:
    """Returns the missing content of the target. Changeable paths are compared, unless the cache uses the target."""
    found = {path: size for path, size in task.source.sizes().items() if is_content(path)}
    there = task.target.sizes()
    if task.in_use:
        return Seen(found, {path: size for path, size in found.items() if path not in there})
    # Sizes find what is missing or cut off. Digests of all content would take hours.
    left = {path: size for path, size in found.items() if there.get(path) != size}
    tags = [path for path in found if path not in left and may_change(path)]
    return Seen(found, {**left, **{path: found[path] for path in tags if differs(task, path)}})


def differs(task: Task, path: str) -> bool:
    """Whether a small file has other content."""
    try:
        return b"".join(task.source.read(path)) != b"".join(task.target.read(path))
    except FileNotFoundError:
        return False


def copy_one(task: Task, path: str) -> str:
    """Copies one file: "copied", "gone" where the cache has dropped it, "spoiled", or "late" where the time is up."""
    if time.monotonic() > task.deadline:
        return "late"
    try:
        task.target.write(path, checked(path, task.source.read(path)))
    except FileNotFoundError:
        return "gone"
    except SpoiledError:
        return "spoiled"
    return "copied"


def copy_all(task: Task, left: dict[str, int]) -> dict[str, list[str]]:
    """Copies blobs, then their references, then tags. Returns outcome -> paths."""
    results: dict[str, list[str]] = {"copied": [], "gone": [], "spoiled": [], "late": []}
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        # A tag must never lead to a manifest that is missing at the target. So each rank waits for the one before it.
        for number in range(3):
            paths = sorted(path for path in left if rank(path) == number)
            for path, outcome in zip(paths, pool.map(lambda path: copy_one(task, path), paths)):
                results[outcome].append(path)
    return results


def write_schedule(task: Task, paths: list[str], keep_hours: int) -> None:
    """Adds copied content to the expiry list, as if it had been pulled. The cache never deletes unlisted content."""
    try:
        known = parse(b"".join(task.source.read(SCHEDULE)))
        times = {key: str(entry["ExpiryData"]) for key, entry in known.items()}
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        times = {}
    now = time.time()
    # A time in the past would make the cache drop the content right after the move.
    later = {key: text for key, text in times.items() if text > time.strftime(TIME, time.gmtime(now))}
    fresh = time.strftime(TIME, time.gmtime(now + keep_hours * 3600))
    task.target.write(SCHEDULE, iter([json.dumps(schedule(paths, later, fresh)).encode()]))


def roomless(tasks: list[Task], seen: list[Seen], place: str) -> Optional[str]:
    """Returns why a folder has too little space for the remaining content, or None."""
    # All upstreams share one disk.
    size, free = sum(sum(one.left.values()) for one in seen), tasks[0].target.free()
    if free is None or size <= free * FULL:
        return None
    return f"{place} has {free / 1e9:.1f} GB free, and {size / 1e9:.1f} GB are to be copied there"


def words(task: Task, seen: Seen, results: dict[str, list[str]]) -> dict[str, str]:
    """The verdict on one upstream."""
    size = sum(seen.left[path] for path in results["copied"])
    value = f"{len(results['copied'])} files, {size / 1e6:.1f} MB copied; {len(seen.all)} there"
    if not results["spoiled"]:
        return own_finding("registry-copy", "PASS", f"{task.upstream}: the content is copied", value=value)
    count = len(results["spoiled"])
    message = f"{task.upstream}: {count} blobs are not what their names say, and were left out"
    remedy = "no action is required. The cache downloads them again on demand"
    return own_finding("registry-copy", "WARN", message, value=results["spoiled"][0], remedy=remedy)


def run(module: AnsibleModule) -> dict[str, Any]:
    """Returns the result of the module. Raises RegistryError and OSError."""
    given = module.params
    source, target = given["source"], given["target"]
    for place in (source, target):
        if place["account"] and (reason := wrong_account(place, given["places"])):
            raise RegistryError(reason)
    deadline = time.monotonic() + given["seconds"]
    tasks = [
        Task(name, store(source, name), store(target, name), given["in_use"], deadline) for name in given["upstreams"]
    ]
    seen = [look(task) for task in tasks]
    if too_small := roomless(tasks, seen, title(target)):
        raise RegistryError(too_small)
    if module.check_mode:
        return {"changed": any(one.left for one in seen), "done": True, "findings": []}
    return copied(tasks, seen, given["keep_hours"])


def copied(tasks: list[Task], seen: list[Seen], keep_hours: int) -> dict[str, Any]:
    """Copies the remaining content of all upstreams."""
    results = [copy_all(task, one.left) for task, one in zip(tasks, seen)]
    done = not any(one["late"] for one in results)
    for task, one, result in zip(tasks, seen, results):
        # A running cache keeps its list in memory and would write over this file.
        if done and one.all and not task.in_use:
            write_schedule(task, sorted(set(one.all) - set(result["spoiled"])), keep_hours)
    findings = [words(task, one, result) for task, one, result in zip(tasks, seen, results)]
    return {"changed": any(one["copied"] for one in results), "done": done, "findings": findings}


def failures(error: Exception, target: str) -> Iterator[str]:
    """Yields the failures as text."""
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        yield f"{target} is full: "
    yield str(error)


def main() -> None:
    """Runs the module."""
    options = {"folder": {"type": "str", "default": ""}, **AZURE_OPTIONS}
    place = {"type": "dict", "required": True, "options": options}
    module = AnsibleModule(
        argument_spec={
            "source": place,
            "target": place,
            "upstreams": {"type": "list", "elements": "str", "required": True},
            "in_use": {"type": "bool", "default": False},
            "keep_hours": {"type": "int", "default": 720},
            "seconds": {"type": "int", "default": 60},
            "places": {"type": "dict", "default": {}},
            "proxy": {"type": "dict", "default": {}},
        },
        supports_check_mode=True,
    )
    use_proxy(module.params["proxy"])
    os.umask(0o077)  # as the cache itself
    try:
        module.exit_json(**run(module))
    except (RegistryError, OSError) as error:
        module.fail_json(msg="".join(failures(error, title(module.params["target"]))))


if __name__ == "__main__":
    main()
