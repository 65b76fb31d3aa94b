#!/usr/bin/python
"""Ansible module: how the registry cache is used, and how much room it has."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_registry_status
short_description: Read the counters and the size of the registry cache
description:
  - Counters begin at zero when the cache starts.
options:
  upstreams: {description: Registries that the cache serves., type: list, elements: str, required: true}
  folder: {description: Folder of the cache's content. Empty for an external store., type: str, default: ""}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Look at the cache
  pai_registry_status: {upstreams: [docker.io], folder: /var/lib/registry}
"""
RETURN = r"""
findings: {description: A verdict per upstream and one on the folder., type: list, elements: dict, returned: always}
"""

import os
import re
import time

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_docker_cache_gc import REMEDY as REMEDY_OF_CONTENT
from ansible.module_utils.pai_docker_cache_gc import (
    REMEDY_OF_ROOM,
    CollectError,
    collect,
    last_reports,
    last_words,
    room,
)
from ansible.module_utils.pai_docker_cache_gc import size as human
from ansible.module_utils.pai_finding import own_finding
from ansible.module_utils.pai_registry import Client, RegistryError, endpoint

COUNTER = re.compile(r'^registry_proxy_(\w+?)_total\{type="\w+"\} (\S+)$', re.MULTILINE)
REMEDY = "run kubectl --namespace pai-docker-cache describe pods"


def counters(text: str) -> dict[str, float]:
    """Name (hits, misses, pulled_bytes, pushed_bytes) -> sum over blobs and manifests."""
    found: dict[str, float] = {}
    for name, value in COUNTER.findall(text):
        found[name] = found.get(name, 0.0) + float(value)
    return found


def size(folder: str) -> int:
    """Bytes on the disk below a folder."""
    total = 0
    for place, _folders, files in os.walk(folder):
        for name in files:
            try:
                total += os.lstat(os.path.join(place, name)).st_blocks * 512
            except OSError:  # dropped by the cache meanwhile
                continue
    return total


def words(seen: dict[str, float]) -> str:
    """The counters as people read them."""
    served, fetched = seen.get("pushed_bytes", 0.0), seen.get("pulled_bytes", 0.0)
    return (
        f"{seen.get('hits', 0):.0f} hits, {seen.get('misses', 0):.0f} misses, "
        f"{served / 1e6:.0f} MB served, {fetched / 1e6:.0f} MB from the upstream"
    )


def used(upstream: str, folder: str) -> dict[str, str]:
    """The verdict on one upstream."""
    try:
        client = Client(endpoint(upstream), upstream)
        with client.open(f"/metrics/{upstream}") as answer:
            seen = counters(answer.read(1 << 20).decode(errors="replace"))
    except RegistryError as error:
        message = f"{upstream}: the cache cannot be asked"
        return own_finding("registry-cache", "FAIL", message, value=str(error), remedy=REMEDY)
    kept = os.path.join(folder, upstream)
    here = f", {size(kept) / 1e6:.0f} MB kept" if folder else ""
    return own_finding("registry-cache", "PASS", f"{upstream}: the cache answers", value=words(seen) + here)


def content() -> dict[str, str]:
    """The verdict on all that the folder keeps."""
    try:
        report = collect(check=True)
    except CollectError as error:
        message = "the cache does not drop what is unused"
        return own_finding("registry-content", "FAIL", message, value=str(error), remedy=REMEDY_OF_CONTENT)
    summary = f"{room(report)}; {last_words(last_reports(), time.time())}"
    if report["short"]:
        message = f"the cache: {human(report['short'])} more is kept, or its disk fuller, than should be"
        return own_finding("registry-content", "WARN", message, value=summary, remedy=REMEDY_OF_ROOM)
    return own_finding("registry-content", "PASS", "the cache keeps within its limit", value=summary)


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "upstreams": {"type": "list", "elements": "str", "required": True},
            "folder": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    given = module.params
    if module.check_mode:
        module.exit_json(changed=False, findings=[])
    findings = [used(name, given["folder"]) for name in given["upstreams"]]
    findings += [content()] if given["folder"] else []
    module.exit_json(changed=False, findings=findings)


if __name__ == "__main__":
    main()
