"""System images in containerd, stored by digest and pinned, so that no registry resolves their tags.

A registry chooses the image of a tag, over plain HTTP, but a digest is verified. The kubelet pulls missing images only.
Garbage collection keeps pinned images, so the kubelet never pulls one of these by its tag.

containerd removes the labels of a name that is pulled again, and any pod with imagePullPolicy Always pulls. So the pin
is on a third name of the image, which is no valid reference and which no pod can pull.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

CTR = ("/usr/local/bin/ctr", "--namespace", "k8s.io")
CRICTL = "/usr/local/bin/crictl"
HOSTS_DIR = "/etc/containerd/certs.d"
# the kubelet's garbage collection passes over an image with the one label; the other says who pinned it
PINNED = "io.cri-containerd.pinned"
OWNED = "pai-install/image"
LABELS = {PINNED: "pinned", OWNED: "system"}
PIN = "pai-install:"
QUESTION_S = 60
PULL_S = 1800


class ImagesError(Exception):
    """containerd failed. The text says why."""


class Held(NamedTuple):
    """An image name in containerd. labels: NAME=VALUE."""

    digest: str
    labels: frozenset[str]

    @property
    def pinned(self) -> bool:
        """Whether garbage collection leaves it alone, by our doing."""
        return self.labels >= set(words(LABELS))


def words(labels: Mapping[str, str]) -> list[str]:
    """Labels as ctr takes them."""
    return [f"{name}={value}" for name, value in labels.items()]


def by_digest(name: str, digest: str) -> str:
    """The image NAME:TAG as REPOSITORY@DIGEST."""
    repository, colon, tag = name.rpartition(":")
    # A colon before a slash is the port of the registry, and no tag.
    return f"{repository if colon and '/' not in tag else name}@{digest}"


def references(images: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Every name under which images (name, digest) are to be held -> digest: by the tag, and by the digest."""
    named = [(image["name"], image["digest"]) for image in images]
    return {reference: digest for name, digest in named for reference in (name, by_digest(name, digest))}


def pins(images: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """The name that pins each image -> its digest."""
    return {f"{PIN}{image['name']}@{image['digest']}": image["digest"] for image in images}


def pinned_names(seen: Iterable[str]) -> dict[str, str]:
    """The names under which pods name pinned images -> digest. seen: names in containerd."""
    found = [name[len(PIN) :].rpartition("@") for name in seen if name.startswith(PIN)]
    return references({"name": name, "digest": digest} for name, _at, digest in found)


def expectations(images: Iterable[Mapping[str, str]]) -> list[dict[str, str]]:
    """Returns the expectations of images for pai_state."""
    return [{"kind": "image", "name": image["name"], "digest": image["digest"]} for image in images]


def parse(listing: str) -> dict[str, Held]:
    """Parses the output of `ctr images ls`: name -> image."""
    found = {}
    for line in listing.splitlines()[1:]:
        # SIZE has a space in it, so labels have no fixed column. A label is recognized by its equals sign.
        columns = line.split()  # REF TYPE DIGEST SIZE PLATFORMS LABELS
        if len(columns) > 3:
            labels = ",".join(columns[3:]).split(",")
            found[columns[0]] = Held(columns[2], frozenset(word for word in labels if "=" in word))
    return found


def ctr(*argv: str, timeout_s: float = QUESTION_S) -> str:
    """The output of ctr. Raises ImagesError."""
    return _output([*CTR, *argv], timeout_s)


def _output(argv: list[str], timeout_s: float) -> str:
    """Returns the standard output of a program. Raises ImagesError with the last line if it fails or times out."""
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ImagesError(f"containerd does not answer within {timeout_s:g} s") from error
    except OSError as error:
        raise ImagesError(f"{argv[0]} cannot be run: {error.strerror}") from error
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines() or [f"{argv[0]} failed"]
        raise ImagesError(lines[-1])
    return done.stdout.decode(errors="replace")


def held(names: Iterable[str], *, owned: bool = False) -> dict[str, Held]:
    """Returns the present images of `names`. owned: also images that an earlier run pinned. Raises ImagesError."""
    filters = [f'name=="{name}"' for name in names]
    # So a later run finds images that the site no longer needs.
    if owned:
        filters.append(f'labels."{OWNED}"=={LABELS[OWNED]}')
    return parse(ctr("images", "ls", *filters)) if filters else {}


def is_pin(found: Held | None, digest: str) -> bool:
    """Whether a name pins the image."""
    return found is not None and found.digest == digest and found.pinned


def pull(reference: str, labels: Iterable[str]) -> None:
    """Pulls an image from the registry in its hosts.toml. Raises ImagesError.

    labels: the complete list, because containerd drops the old labels of an image with the same name.
    """
    # A name that is pulled again loses its old labels, so all of them are given each time.
    options = [option for label in labels for option in ("--label", label)]
    ctr("images", "pull", "--hosts-dir", HOSTS_DIR, *options, reference, timeout_s=PULL_S)


def repull(reference: str) -> None:
    """Asks the registry for an image once more, which keeps its labels here. Raises ImagesError."""
    there = held([reference]).get(reference)
    pull(reference, sorted(there.labels) if there else ())


def running_others() -> tuple[int, list[str]]:
    """Returns the number of containers with a pinned image name, and the list of those with outdated images.

    Entries are "CONTAINER (NAME)". A container keeps its old image after the repair of the tag. Raises ImagesError.
    """
    pinned = pinned_names(held((), owned=True))
    images, containers = (_crictl(words) for words in (["images"], ["ps"]))
    try:
        return others(pinned, images["images"], containers["containers"])
    except (KeyError, TypeError, AttributeError) as error:
        raise ImagesError(f"crictl's answer lacks {error}") from error


def others(
    pinned: Iterable[str], images: Iterable[Mapping[str, Any]], containers: Iterable[Mapping[str, Any]]
) -> tuple[int, list[str]]:
    """Does the same for outputs of containerd and crictl."""
    # A container names its image by the id of its configuration, and a pod by a tag or digest.
    ids = {name: image["id"] for image in images for name in (*image["repoTags"], *image["repoDigests"])}
    known = set(pinned)
    runs = [(it, _held_name(it["image"].get("userSpecifiedImage", ""))) for it in containers]
    own_runs = [(it, name) for it, name in runs if name in known]
    # A container keeps its image until it is restarted, also if the tag names another image by now.
    other = [(it, name) for it, name in own_runs if it["imageRef"] != ids.get(name)]
    return len(own_runs), [f"{it['metadata']['name']} ({name})" for it, name in other]


def _held_name(named: str) -> str:
    """The name under which an image that a pod names is held: a digest goes before the tag."""
    name, _, digest = named.partition("@")
    return by_digest(name, digest) if digest else name


def _crictl(words: list[str]) -> Any:
    try:
        return json.loads(_output([CRICTL, *words, "--output", "json"], QUESTION_S))
    except ValueError as error:
        raise ImagesError(f"crictl returned no JSON: {error}") from error


def image_problems(expected: list[dict[str, Any]]) -> list[tuple[dict[str, Any], str]]:
    """Returns the violated expectations with a sentence each, or one for all if containerd does not respond."""
    if not expected:
        return []
    try:
        seen = held([*references(expected), *pins(expected)])
    except ImagesError as error:
        return [(expected[0], f"the images of the system cannot be seen: {error}")]
    return [(item, problem) for item in expected if (problem := _problem(item, seen))]


def _problem(item: Mapping[str, str], seen: Mapping[str, Held]) -> str:
    for name, digest in references([item]).items():
        found = seen.get(name)
        if found is None:
            return f"image {name} is missing"
        if found.digest != digest:
            return f"image {name} is {found.digest} instead of {digest}"
    for name, digest in pins([item]).items():
        if not is_pin(seen.get(name), digest):
            return f"image {item['name']} is not pinned"
    return ""
