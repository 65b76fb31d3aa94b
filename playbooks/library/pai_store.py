#!/usr/bin/python
"""Ansible module: fill the component store (its action sends what is missing from the dev box)."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_store
short_description: Fill the component store from the dev box
description:
  - In a playbook, give I(files) and I(images); the action of the same name sends only what the store lacks.
options:
  url: {description: The registry., type: str, required: true}
  files: {description: "Files on the dev box: name, path, sha256.", type: list, elements: dict}
  images:
    description: "OCI layouts on the dev box: repository, tag, layout, manifest_digest."
    type: list
    elements: dict
  data: {description: "Where the registry keeps its blobs, to see later that they are still there.", type: path}
  state: {description: The action's own step., type: str, choices: [missing, push], default: missing}
  blobs: {description: The action's own., type: list, elements: dict, default: []}
  manifests: {description: The action's own., type: list, elements: dict, default: []}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Seed the registry
  pai_store: {url: "http://127.0.0.1:5080", files: [], images: []}
"""
RETURN = r"""
managed: {description: Expectations for pai_record., type: list, elements: dict, returned: always}
sent: {description: Repositories that were filled., type: list, elements: str, returned: always}
"""

import base64
import http.client
import os
import urllib.parse
from typing import Any

from ansible.module_utils.basic import AnsibleModule

MANIFEST_TYPES = "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json"


class Registry:
    """The registry's HTTP API, over one connection."""

    def __init__(self, url: str) -> None:
        self.base = urllib.parse.urlsplit(url)
        self.connection = http.client.HTTPConnection(str(self.base.netloc), timeout=120)

    def request(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """One request; status and headers."""
        self.connection.request(method, path, body=body, headers=headers or {})
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status >= 400 and answer.status != 404:
            raise OSError(f"{method} {path}: {answer.status} {text[:300].decode(errors='replace')}")
        return answer.status, answer.headers

    def has_blob(self, blob: dict[str, Any]) -> bool:
        """Whether the repository has the blob."""
        return self.request("HEAD", f"/v2/{blob['repository']}/blobs/{blob['digest']}")[0] == 200

    def has_manifest(self, manifest: dict[str, Any]) -> bool:
        """Whether the tag names exactly this manifest."""
        path = f"/v2/{manifest['repository']}/manifests/{manifest['tag']}"
        status, headers = self.request("HEAD", path, headers={"Accept": MANIFEST_TYPES})
        return status == 200 and headers.get("Docker-Content-Digest") == manifest["digest"]

    def push_blob(self, blob: dict[str, Any]) -> None:
        """Uploads; the registry checks the digest."""
        _status, headers = self.request("POST", f"/v2/{blob['repository']}/blobs/uploads/")
        location = urllib.parse.urlsplit(headers["Location"])
        query = location.query + ("&" if location.query else "") + urllib.parse.urlencode({"digest": blob["digest"]})
        target = f"{location.path}?{query}"
        if "content" in blob:
            self.request("PUT", target, base64.b64decode(blob["content"]))
            return
        size = {"Content-Length": str(os.stat(blob["path"]).st_size), "Content-Type": "application/octet-stream"}
        with open(blob["path"], "rb") as handle:
            self.request("PUT", target, handle, size)

    def push_manifest(self, manifest: dict[str, Any]) -> None:
        """Tags."""
        path = f"/v2/{manifest['repository']}/manifests/{manifest['tag']}"
        content = base64.b64decode(manifest["content"])
        self.request("PUT", path, content, {"Content-Type": manifest["media_type"]})


def push(registry: Registry, blobs: list[dict[str, Any]], manifests: list[dict[str, Any]]) -> None:
    """Blobs first, then the manifests that name them; files are removed once nothing needs them."""
    for index, blob in enumerate(blobs):
        registry.push_blob(blob)
        path = blob.get("path")
        if path and all(later.get("path") != path for later in blobs[index + 1 :]):
            os.unlink(path)
    for manifest in manifests:
        registry.push_manifest(manifest)


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "url": {"type": "str", "required": True},
            "files": {"type": "list", "elements": "dict"},
            "images": {"type": "list", "elements": "dict"},
            "data": {"type": "path"},
            "state": {"type": "str", "choices": ["missing", "push"], "default": "missing"},
            "blobs": {"type": "list", "elements": "dict", "default": []},
            "manifests": {"type": "list", "elements": "dict", "default": []},
        },
        supports_check_mode=True,
    )
    blobs, manifests = module.params["blobs"], module.params["manifests"]
    registry = Registry(module.params["url"])
    try:
        if module.params["state"] == "push":
            push(registry, blobs, manifests)
            module.exit_json(changed=True)
        module.exit_json(
            changed=False,
            missing_blobs=[index for index, blob in enumerate(blobs) if not registry.has_blob(blob)],
            missing_manifests=[index for index, entry in enumerate(manifests) if not registry.has_manifest(entry)],
        )
    except ConnectionRefusedError:
        if not module.check_mode:
            module.fail_json(msg=f"the component store at {module.params['url']} does not answer")
        everything = {"missing_blobs": list(range(len(blobs))), "missing_manifests": list(range(len(manifests)))}
        module.exit_json(changed=False, **everything)
    except (OSError, http.client.HTTPException) as error:
        module.fail_json(msg=f"the component store at {module.params['url']}: {error}")


if __name__ == "__main__":
    main()
