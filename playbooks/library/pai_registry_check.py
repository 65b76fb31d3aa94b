#!/usr/bin/python
"""Ansible module: does this machine get its images the way the site wants, seen from itself?"""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_registry_check
short_description: Ask the endpoints in hosts.toml, and pull an image as containerd does
description:
  - Returns findings. A failed check never fails the task, so that all checks run.
options:
  upstreams: {description: Registries with endpoints to check., type: list, elements: str, default: []}
  images: {description: Images to pull with containerd and remove again., type: list, elements: str, default: []}
  attempts: {description: "Attempts per endpoint, a second apart.", type: int, default: 10}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Test the registries
  pai_registry_check: {upstreams: [docker.io, quay.io], images: [docker.io/library/busybox:stable]}
"""
RETURN = r"""
findings: {description: One verdict per endpoint and image., type: list, elements: dict, returned: always}
"""

import time

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_finding import own_finding
from ansible.module_utils.pai_images import HOSTS_DIR
from ansible.module_utils.pai_registry import Client, RegistryError, endpoint, parse_image

# A namespace of its own: what is pulled to test is no image of a pod's, and goes away again.
CTR = ("/usr/local/bin/ctr", "--namespace", "pai-registry-check")
REACH_REMEDY = "run registry show to list the differences on this machine, and apply --phase registries to repair them"
PULL_REMEDY = "run registry status to check the cache and its upstreams"


def check_endpoint(upstream: str, attempts: int) -> dict[str, str]:
    """Returns the finding on the endpoint of one upstream."""
    error_text = ""
    for _attempt in range(attempts):
        try:
            place = endpoint(upstream)
            Client(place, upstream).ping()
        except RegistryError as error:
            error_text = str(error)
            time.sleep(1)
            continue
        return own_finding("registry-reachable", "PASS", f"{upstream}: {place.url} answers")
    message = f"{upstream} cannot be used"
    return own_finding("registry-reachable", "FAIL", message, value=error_text[-400:], remedy=REACH_REMEDY)


def pulled(module: AnsibleModule, text: str) -> dict[str, str]:
    """The verdict on one image."""
    image = str(parse_image(text))
    began = time.monotonic()
    status, out, err = module.run_command([*CTR, "images", "pull", "--hosts-dir", HOSTS_DIR, image])
    took = f"{time.monotonic() - began:.1f} s"
    module.run_command([*CTR, "images", "remove", "--sync", image])
    if status == 0:
        return own_finding("registry-pull", "PASS", f"containerd pulls {image}", value=took)
    error_text = (err or out).strip()[-400:]
    return own_finding("registry-pull", "FAIL", f"containerd cannot pull {image}", value=error_text, remedy=PULL_REMEDY)


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "upstreams": {"type": "list", "elements": "str", "default": []},
            "images": {"type": "list", "elements": "str", "default": []},
            "attempts": {"type": "int", "default": 10},
        },
        supports_check_mode=True,
    )
    if module.check_mode:
        module.exit_json(changed=False, findings=[])
    given = module.params
    findings = [check_endpoint(name, given["attempts"]) for name in given["upstreams"]]
    findings += [pulled(module, image) for image in given["images"]]
    module.exit_json(changed=False, findings=findings)


if __name__ == "__main__":
    main()
