"""Action of pai_store: sends only missing content of the component store from the controller host."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
BATCH_BYTES = 128 << 20
EMPTY = b"{}"
EMPTY_DIGEST = "sha256:" + hashlib.sha256(EMPTY).hexdigest()


def file_manifest(file: dict[str, Any]) -> bytes:
    """The OCI artifact that keeps a file's blob in the registry: a blob without a manifest is garbage to it."""
    size = os.stat(file["path"]).st_size
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "artifactType": "application/vnd.pai-install.file",
        "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": EMPTY_DIGEST, "size": len(EMPTY)},
        "layers": [{"mediaType": "application/octet-stream", "digest": "sha256:" + file["sha256"], "size": size}],
    }
    return json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode()


def file_contents(file: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Blobs {repository, digest, path | content} and the manifest {repository, tag, digest, content} of a file."""
    repository = f"files/{file['name']}"
    manifest = file_manifest(file)
    blobs = [
        {"repository": repository, "digest": EMPTY_DIGEST, "content": base64.b64encode(EMPTY).decode()},
        {"repository": repository, "digest": "sha256:" + file["sha256"], "path": file["path"]},
    ]
    return blobs, _manifest(repository, file["sha256"][:16], MANIFEST_TYPE, manifest)


def image_contents(image: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The same for an image in an OCI layout folder."""
    folder = os.path.join(image["layout"], "blobs", "sha256")
    with open(blob_path(folder, image["manifest_digest"]), "rb") as handle:
        content = handle.read()
    parsed = json.loads(content)
    blobs = [
        {
            "repository": image["repository"],
            "digest": part["digest"],
            "path": blob_path(folder, part["digest"]),
        }
        for part in [parsed["config"], *parsed["layers"]]
    ]
    return blobs, _manifest(image["repository"], image["tag"], parsed.get("mediaType", MANIFEST_TYPE), content)


def blob_path(folder: str, digest: str) -> str:
    """Returns the path of a blob in a layout. Raises AnsibleActionFail for a digest that leads out of it."""
    if not DIGEST.fullmatch(digest):
        raise AnsibleActionFail(f"an image names {digest[:100]!r}, which is no sha256 digest")
    return os.path.join(folder, digest.split(":")[1])


def _manifest(repository: str, tag: str, media_type: str, content: bytes) -> dict[str, Any]:
    digest = "sha256:" + hashlib.sha256(content).hexdigest()
    encoded = base64.b64encode(content).decode()
    return {"repository": repository, "tag": tag, "media_type": media_type, "digest": digest, "content": encoded}


def blob_file(data: str, digest: str) -> dict[str, str]:
    """The expectation that the registry still has a blob, by the file it keeps it in."""
    word = digest.split(":")[1]
    return {"kind": "present", "path": f"{data}/docker/registry/v2/blobs/sha256/{word[:2]}/{word}/data"}


def names(entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the entries without their bytes, for the query of missing ones."""
    return [{key: value for key, value in entry.items() if key not in ("path", "content")} for entry in entries]


def batches(blobs: Iterable[dict[str, Any]], most: int = BATCH_BYTES) -> Iterator[list[dict[str, Any]]]:
    """Yields batches of blobs below `most` bytes, or a single larger blob. Blobs of one file stay together.

    The store keeps completed batches, so the next run continues after an interruption.
    """
    same: dict[str, list[dict[str, Any]]] = {}
    for blob in blobs:
        same.setdefault(blob["digest"], []).append(blob)
    batch: list[dict[str, Any]] = []
    size = 0
    for entries in same.values():
        added = os.stat(entries[0]["path"]).st_size if "path" in entries[0] else 0
        if batch and size + added > most:
            yield batch
            batch, size = [], 0
        batch.extend(entries)
        size += added
    if batch:
        yield batch


class ActionModule(ActionBase):
    """Queries the machine for missing blobs, sends them, and lets the machine add them to the store."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The action."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        args = self._task.args
        contents = [file_contents(file) for file in args.get("files") or []]
        contents += [image_contents(image) for image in args.get("images") or []]
        blobs = [blob for found, _manifest in contents for blob in found]
        manifests = [manifest for _blobs, manifest in contents]
        # The machine is asked first: a second run must not send gigabytes again.
        missing = self._module("missing", names(blobs), names(manifests), task_vars)
        wanted_blobs = [blobs[index] for index in missing["missing_blobs"]]
        wanted_manifests = [manifests[index] for index in missing["missing_manifests"]]
        result.update(changed=bool(wanted_blobs or wanted_manifests), sent=[m["repository"] for m in wanted_manifests])
        result["managed"] = [blob_file(args["data"], digest) for digest in sorted({b["digest"] for b in blobs})]
        if result["changed"] and not self._task.check_mode:
            # the module removes each file as soon as the store has it
            for batch in batches(wanted_blobs):
                self._module("push", self._send(batch), [], task_vars)
            # A registry refuses a manifest without its blobs, so manifests come in a call of their own.
            self._module("push", [], wanted_manifests, task_vars)
        return result

    def _send(self, blobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Transfers each file once. Returns the blobs with their paths on the machine."""
        folder = self._connection._shell.tmpdir or self._make_tmp_path()  # noqa: SLF001 - how actions name it
        sent = []
        for blob in blobs:
            if "content" in blob:
                sent.append(blob)
                continue
            remote = self._connection._shell.join_path(folder, blob["digest"].split(":")[1])  # noqa: SLF001
            # Several images share layers.
            if all(remote != entry.get("path") for entry in sent):
                self._transfer_file(blob["path"], remote)
            sent.append({**blob, "path": remote})
        return sent

    def _module(
        self,
        state: str,
        blobs: list[dict[str, Any]],
        manifests: list[dict[str, Any]],
        task_vars: dict[str, Any] | None,
    ) -> dict[str, Any]:
        args = self._task.args
        arguments = {
            "url": args["url"],
            "ca": args["ca"],
            "data": args["data"],
            "state": state,
            "blobs": blobs,
            "manifests": manifests,
        }
        done: dict[str, Any] = self._execute_module("pai_store", arguments, task_vars=task_vars)
        if done.get("failed"):
            raise AnsibleActionFail(done.get("msg", "cannot fill the component store"), result=done)
        return done
