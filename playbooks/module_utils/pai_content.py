"""The contents of a cache for one upstream, in a folder or in Azure. CNCF distribution uses the same paths in both.

Python 3.9.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Optional, Union

from ansible.module_utils.pai_blob import Account, Container, account_of

PIECE = 1 << 20
BLOB = re.compile(r"docker/registry/v2/blobs/sha256/[0-9a-f]{2}/(?P<digest>[0-9a-f]{64})/data")
# of what may expire: a layer or a manifest of a repository, with its number in the registry's own list
ENTRIES = re.compile(
    r"docker/registry/v2/repositories/(?P<repository>.+)/(?P<kind>_layers|_manifests/revisions)"
    r"/sha256/(?P<digest>[0-9a-f]{64})/link"
)
NUMBERS = {"_layers": 0, "_manifests/revisions": 1}
# the list of what expires when; written again for the place that is copied to
SCHEDULE = "scheduler-state.json"
TEMPORARY = ".pai-copy"


class SpoiledError(Exception):
    """Contents do not match the digest in their path."""


class Folder(NamedTuple):
    """A folder of this machine."""

    root: str

    def sizes(self) -> dict[str, int]:
        """Path below the root -> size in bytes, of every file."""
        found = {}
        for place, _folders, names in os.walk(self.root):
            for name in names:
                path = os.path.join(place, name)
                try:
                    found[os.path.relpath(path, self.root)] = os.lstat(path).st_size
                # The cache serves while its content moves, so files come and go during the walk.
                except FileNotFoundError:  # dropped by the cache meanwhile
                    continue
        return found

    def read(self, path: str) -> Iterator[bytes]:
        """A file, in pieces. Raises FileNotFoundError."""
        with open(os.path.join(self.root, path), "rb") as handle:
            while piece := handle.read(PIECE):
                yield piece

    def write(self, path: str, pieces: Iterable[bytes]) -> None:
        """Makes or replaces a file, whole or not at all, for root alone."""
        whole = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(whole), mode=0o700, exist_ok=True)
        temporary = whole + TEMPORARY
        try:
            # Nobody else may write there. A link in this place would be a trap.
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "wb") as handle:
                for piece in pieces:
                    handle.write(piece)
                handle.flush()
                os.fsync(handle.fileno())
            # The cache may read the file at any moment, and would serve half of it.
            os.replace(temporary, whole)
        except BaseException:
            if os.path.lexists(temporary):
                os.unlink(temporary)
            raise

    def free(self) -> Optional[int]:
        """Bytes that its disk has room for."""
        there = self.root
        while not os.path.isdir(there):
            there = os.path.dirname(there)
        return shutil.disk_usage(there).free


class Prefix(NamedTuple):
    """Blobs of a container under the folder `name`."""

    container: Container
    name: str

    def sizes(self) -> dict[str, int]:
        """Path after the prefix -> size in bytes."""
        start = f"{self.name}/"
        return {name[len(start) :]: size for name, size in self.container.sizes(start)}

    def read(self, path: str) -> Iterator[bytes]:
        """A blob, in pieces. Raises FileNotFoundError."""
        return self.container.read(f"{self.name}/{path}")

    def write(self, path: str, pieces: Iterable[bytes]) -> None:
        """Makes or replaces a blob, whole or not at all."""
        self.container.write(f"{self.name}/{path}", pieces)

    def free(self) -> Optional[int]:
        """None: Azure says nothing of its room."""
        return None


Store = Union[Folder, Prefix]


def store(place: Mapping[str, str], upstream: str) -> Store:
    """Where an upstream's content is. place: folder, or account, access_key, container, endpoint."""
    if place.get("folder"):
        return Folder(os.path.join(place["folder"], upstream))
    return Prefix(Container(account_of(place)), upstream)


def title(place: Mapping[str, str]) -> str:
    """A place in words."""
    account: Account = account_of(place)
    return place.get("folder") or f"container {account.container} of {account.service}"


def is_content(path: str) -> bool:
    """Returns whether a path is stored content, not an upload in progress."""
    # An upload belongs to a running request of the registry. Its copy would never end.
    unfinished = "/_uploads/" in f"/{path}" or path.endswith((TEMPORARY, ".tmp"))
    return path.startswith("docker/registry/v2/") and not unfinished


def may_change(path: str) -> bool:
    """Returns whether the content of a path can change, such as the target of a tag."""
    # All other paths contain a digest, so equal paths have equal content.
    return path.endswith("/current/link")


def rank(path: str) -> int:
    """The copy order: content first, references to it later."""
    # A killed copy then never leaves a tag or manifest whose layers are missing.
    return 0 if BLOB.fullmatch(path) else 2 if "/_manifests/tags/" in path else 1


def checked(path: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the pieces, then raises SpoiledError if they do not match the digest in the path."""
    wanted = BLOB.fullmatch(path)
    sums = hashlib.sha256()
    for piece in pieces:
        sums.update(piece)
        yield piece
    if wanted and sums.hexdigest() != wanted["digest"]:
        raise SpoiledError(path)


def schedule(paths: Iterable[str], known: Mapping[str, str], fresh: str) -> dict[str, dict[str, object]]:
    """Returns the expiry list of the registry. known: entry -> time. fresh: time of all other entries (RFC 3339)."""
    found: dict[str, dict[str, object]] = {}
    for path in paths:
        entry = ENTRIES.fullmatch(path)
        if entry:
            key = f"{entry['repository']}@sha256:{entry['digest']}"
            found[key] = {"Key": key, "ExpiryData": known.get(key, fresh), "EntryType": NUMBERS[entry["kind"]]}
    return found
