#!/usr/bin/python
"""Ansible module: is this machine fit to be a node, seen from itself?"""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_node_check
short_description: Check swap, time and the container runtimes of a machine by using them
description:
  - Returns findings. A failed check never fails the task, so that all checks run.
options:
  image: {description: Image to start with containerd., type: str, required: true}
  docker_image: {description: The same image as Docker pulls it. Empty to skip Docker., type: str, default: ""}
  runtimes: {description: Runtimes to start a container with., type: list, elements: str, default: [runc]}
  container: {description: Whether the machine shares its kernel with others., type: bool, default: false}
  max_offset: {description: Seconds the clock may be off., type: float, default: 0.1}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Check the node
  pai_node_check: {image: "registry.pai.internal/busybox@sha256:...", runtimes: [runc, nvidia]}
"""
RETURN = r"""
findings: {description: One verdict per check., type: list, elements: dict, returned: always}
"""

import concurrent.futures
import re
import time
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_finding import own_finding
from ansible.module_utils.pai_images import CTR, ImagesError, repull, running_others

# What a container ends with, to prove that it ran: the output of one that ends at once is lost now and then.
PROOF = 42
PROGRAM = ["/bin/busybox", "sh", "-c", f"exit {PROOF}"]


class Checks:
    """The checks of one machine."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module

    def command(self, argv: list[str]) -> tuple[int, str]:
        """Returns status and output."""
        status, out, err = self.module.run_command(argv)
        return status, (out + err).strip()

    def swap(self) -> dict[str, str]:
        """Swap is off."""
        if self.module.params["container"]:
            return own_finding("swap-off", "SKIP", "swap belongs to the kernel's owner")
        with open("/proc/swaps", encoding="ascii") as handle:
            devices = [line.split()[0] for line in handle.read().splitlines()[1:]]
        if not devices:
            return own_finding("swap-off", "PASS", "swap is off")
        seen = ", ".join(devices)
        return own_finding(
            "swap-off", "FAIL", "swap is on", value=seen, expected="none", remedy="run apply --phase base"
        )

    def clock(self) -> dict[str, str]:
        """Checks that chrony has a source and a small offset. It may need some seconds after its start."""
        limit = self.module.params["max_offset"]
        output = ""
        for _attempt in range(20):
            status, output = self.command(["chronyc", "-n", "tracking"])
            offset = re.search(r"^System time\s*:\s*([\d.]+) seconds", output, re.MULTILINE)
            normal = re.search(r"^Leap status\s*:\s*Normal", output, re.MULTILINE)
            if status == 0 and normal and offset and float(offset.group(1)) <= limit:
                source = re.search(r"^Reference ID\s*:\s*\S+ \((.*)\)", output, re.MULTILINE)
                name = source.group(1) if source and source.group(1) else "the local clock"
                return own_finding("time-sync", "PASS", f"synchronised with {name}", value=f"{offset.group(1)} s off")
            time.sleep(1)
        return own_finding(
            "time-sync",
            "FAIL",
            "the clock is not synchronised",
            value=output[-300:],
            expected=f"a source, at most {limit} s off",
            remedy="run chronyc -n sources on this machine to list the servers that answer. Open UDP port 123 to them",
        )

    def containerd(self, runtime: str) -> dict[str, str]:
        """A container runs through a runtime of containerd."""
        image = self.module.params["image"]
        check = f"containerd-{runtime}"
        name = f"pai-check-{runtime}"
        try:
            # A pull proves certificate, name, and login of the store. An image in the cache would hide a broken way.
            repull(image)
        except ImagesError as error:
            return own_finding(
                check,
                "FAIL",
                f"cannot pull {image}",
                value=str(error)[-300:],
                remedy="check the network to the component store on the first control plane",
            )
        self.command([*CTR, "containers", "delete", name])  # of an interrupted check
        binary = {"runc": "/usr/local/sbin/runc", "nvidia": "/usr/local/bin/nvidia-container-runtime"}[runtime]
        status, output = self.command([*CTR, "run", "--rm", "--runc-binary", binary, image, name, *PROGRAM])
        return self.ran(check, f"containerd with {runtime}", status, output)

    def docker(self, runtime: str) -> dict[str, str]:
        """A container runs through a runtime of Docker."""
        image = self.module.params["docker_image"]
        words = ["docker", "run", "--network", "none", "--rm", "--runtime", runtime, image, *PROGRAM]
        status, output = self.command(words)  # --quiet came with Docker 23
        return self.ran(f"docker-{runtime}", f"Docker with {runtime}", status, output)

    def images(self) -> dict[str, str]:
        """Containers of the system run from the images that the plan names."""
        try:
            count, others = running_others()
        except ImagesError as error:
            return own_finding("system-images", "UNKNOWN", "the containers' images cannot be seen", value=str(error))
        if not others:
            return own_finding("system-images", "PASS", f"{count} containers of the system run from the planned images")
        return own_finding(
            "system-images",
            "WARN",
            f"containers run from another image than the planned one: {', '.join(others)}",
            value=f"{len(others)} of {count}",
            expected="started since the tag was repaired",
            remedy="run crictl stop CONTAINER on this machine. The kubelet restarts it from the planned image",
        )

    def ran(self, check: str, what: str, status: int, output: str) -> dict[str, str]:
        """The verdict on a container that was asked to end in a way of its own."""
        if status == PROOF:
            return own_finding(check, "PASS", f"a container runs through {what}")
        message = f"no container runs through {what}"
        remedy = "check journalctl -u containerd -u docker on this machine, and run apply --phase runtime"
        return own_finding(
            check,
            "FAIL",
            message,
            value=f"exit status {status}: {output[-400:]}",
            expected=f"exit status {PROOF}",
            remedy=remedy,
        )

    def all(self) -> list[dict[str, str]]:
        """Returns the findings of all checks. Time and runtimes run in parallel, because both mostly wait."""
        runtimes = self.module.params["runtimes"]
        with concurrent.futures.ThreadPoolExecutor() as pool:
            clock = pool.submit(self.clock)
            containers: list[Any] = [self.containerd(name) for name in runtimes]
            if self.module.params["docker_image"]:
                containers += [self.docker(name) for name in runtimes]
            return [self.swap(), clock.result(), *containers, self.images()]


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "image": {"type": "str", "required": True},
            "docker_image": {"type": "str", "default": ""},
            "runtimes": {"type": "list", "elements": "str", "default": ["runc"]},
            "container": {"type": "bool", "default": False},
            "max_offset": {"type": "float", "default": 0.1},
        },
        supports_check_mode=True,
    )
    module.exit_json(changed=False, findings=[] if module.check_mode else Checks(module).all())


if __name__ == "__main__":
    main()
