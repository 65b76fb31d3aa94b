#!/usr/bin/python
"""Ansible module: bring images into the cache by reading them through it once."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_registry_warm
short_description: Read images through the cache, so that it has them before a job asks
description:
  - Nothing is kept on the machine.
options:
  images: {description: Images to read., type: list, elements: str, required: true}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Warm the cache
  pai_registry_warm: {images: [docker.io/library/busybox:stable]}
"""
RETURN = r"""
findings: {description: One verdict per image., type: list, elements: dict, returned: always}
"""

import platform
import time

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_finding import own_finding
from ansible.module_utils.pai_registry import Client, RegistryError, endpoint, parse_image, pull_through

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
REMEDY = "run registry status to check the cache and its upstreams"


def warmed(text: str) -> dict[str, str]:
    """The verdict on one image."""
    image = parse_image(text)
    architecture = ARCHITECTURES.get(platform.machine(), platform.machine())
    began = time.monotonic()
    try:
        size = pull_through(Client(endpoint(image.upstream), image.upstream), image, architecture)
    except RegistryError as error:
        return own_finding("registry-warm", "FAIL", f"{image} is not in the cache", value=str(error), remedy=REMEDY)
    took = time.monotonic() - began
    value = f"{size / 1e6:.1f} MB in {took:.1f} s"
    return own_finding("registry-warm", "PASS", f"the cache has {image}", value=value)


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={"images": {"type": "list", "elements": "str", "required": True}}, supports_check_mode=True
    )
    findings = [] if module.check_mode else [warmed(image) for image in module.params["images"]]
    module.exit_json(changed=False, findings=findings)


if __name__ == "__main__":
    main()
