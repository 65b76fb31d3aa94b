#!/usr/bin/python
"""Ansible module: the images of the system, as the plan names them by digest."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_images
short_description: Hold images in containerd by their digests, pinned, under the tags that pods name
description:
  - Pulls missing images by digest, tags, and pins them, so that no program requests the tag from a registry
    and the kubelet's garbage collection keeps them. A tag that points to another digest is repaired.
  - The pin is on a name that is no valid reference, so that no pod can pull it and remove the labels.
  - Unpins images of earlier runs that are no longer required. Garbage collection deletes them when
    nothing uses them.
  - Containers that run already keep the image they were started from.
options:
  images: {description: "Images: name (with its tag), digest.", type: list, elements: dict, required: true}
  role: {description: Role whose record is written. Default is no record., type: str, default: ""}
  settings: {description: As in pai_state., type: dict, default: {}}
  managed: {description: As in pai_state., type: list, elements: raw, default: []}
  notes: {description: As in pai_state., type: dict, default: {}}
  packages: {description: As in pai_state., type: list, elements: str, default: []}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Hold the image of the pod sandbox
  pai_images:
    images:
      - name: registry.pai.internal/pause:3.10.2
        digest: sha256:a85519d12dd57e44bb5b6aee78ef4b02ae7e6fe9b6b838c24685da39e58007ce
"""
RETURN = r"""
managed: {description: Expectations for pai_state., type: list, elements: dict, returned: always}
"""

import concurrent.futures
from collections.abc import Mapping
from typing import NamedTuple

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_images import (
    LABELS,
    PIN,
    Held,
    ImagesError,
    by_digest,
    ctr,
    expectations,
    held,
    is_pin,
    pins,
    pull,
    references,
    words,
)
from ansible.module_utils.pai_role_record import RECORD_OPTIONS, write_record

# as many as the kubelet pulls at a time
PULLS = 4


class Work(NamedTuple):
    """Pending work: references to pull, names and pins to set (-> reference to take them from), to unpin."""

    pull: list[str]
    tag: dict[str, str]
    pin: dict[str, str]
    unpin: list[str]


def work(images: list[dict[str, str]], seen: Mapping[str, Held]) -> Work:
    """Returns the pending work from desired and current images."""
    todo = Work([], {}, {}, [])
    for image in images:
        _add(todo, image, seen)
    kept = {*references(images), *pins(images)}
    # Their pods may still run, so nothing is deleted here.
    todo.unpin.extend(name for name in seen if name not in kept)
    return todo


def _add(todo: Work, image: dict[str, str], seen: Mapping[str, Held]) -> None:
    pair = references([image])
    right = [name for name, digest in pair.items() if name in seen and seen[name].digest == digest]
    source = right[0] if right else by_digest(image["name"], image["digest"])
    if not right:
        todo.pull.append(source)
    todo.tag.update({name: source for name in pair if name not in right and name != source})
    todo.pin.update({pin: source for pin, digest in pins([image]).items() if not is_pin(seen.get(pin), digest)})


def do(todo: Work) -> None:
    """Does it. A pull that fails leaves tags as they are. Raises ImagesError."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=PULLS) as pool:
        # All pulls come before the first tag. So a failure leaves the tags of a whole version.
        list(pool.map(fetch, todo.pull))
    for name, source in todo.tag.items():
        ctr("images", "tag", "--force", source, name)
    for pin, source in todo.pin.items():
        # The name of a pin is no valid reference on purpose, which ctr refuses without this option.
        ctr("images", "tag", "--force", "--skip-reference-check", source, pin)
        ctr("images", "label", pin, *words(LABELS))
    for name in todo.unpin:
        if name.startswith(PIN):
            ctr("images", "rm", name)
        else:
            ctr("images", "label", name, *words(dict.fromkeys(LABELS, "")))


def fetch(reference: str) -> None:
    """Pulls by digest. Raises ImagesError that names the image."""
    try:
        pull(reference, ())
    except ImagesError as error:
        raise ImagesError(f"{reference} cannot be pulled: {error}") from error


def shown(images: Mapping[str, Held]) -> str:
    """Images as lines, for a diff."""
    return "".join(f"{name} {it.digest}{' pinned' if it.pinned else ''}\n" for name, it in sorted(images.items()))


def diff(images: list[dict[str, str]], todo: Work, seen: Mapping[str, Held]) -> dict[str, str]:
    """Name, digest and pin before and after, of all that changes."""
    names = references(images)
    after = {name: Held(names[name], frozenset()) for name in (*todo.pull, *todo.tag)}
    after.update(
        {name: Held(digest, frozenset(words(LABELS))) for name, digest in pins(images).items() if name in todo.pin}
    )
    after.update({name: Held(seen[name].digest, frozenset()) for name in todo.unpin if not name.startswith(PIN)})
    before = {name: seen[name] for name in (*after, *todo.unpin) if name in seen}
    return {"before": shown(before), "after": shown(after), "before_header": "images", "after_header": "images"}


def observed(module: AnsibleModule, images: list[dict[str, str]]) -> dict[str, Held]:
    """Returns the images in containerd, or {} in check mode on a machine without containerd."""
    try:
        return held([*references(images), *pins(images)], owned=True)
    except ImagesError as error:
        if not module.check_mode:
            module.fail_json(msg=f"the images of the system cannot be seen: {error}")
    return {}


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={"images": {"type": "list", "elements": "dict", "required": True}, **RECORD_OPTIONS},
        supports_check_mode=True,
    )
    images = module.params["images"]
    seen = observed(module, images)
    todo = work(images, seen)
    if not module.check_mode:
        try:
            do(todo)
        except ImagesError as error:
            module.fail_json(
                msg=f"image {error}",
                remedy=(
                    "run apply --phase components,runtime, and check the network to the component store on the first "
                    "control plane"
                ),
            )
    managed = expectations(images)
    record = write_record(module, managed)
    changed = any(todo) or bool(record["given_back"])
    module.exit_json(changed=changed, managed=managed, diff=diff(images, todo, seen))


if __name__ == "__main__":
    main()
