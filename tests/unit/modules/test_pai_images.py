"""Images by digest, with the recorded output of containerd 2.3.7's ctr and a containerd in memory."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.ansible_path import module_util

from .conftest import ModuleFailedError, Run

ROOM = "registry.pai.internal"
A, B = f"sha256:{'a' * 64}", f"sha256:{'b' * 64}"
PAUSE = {"name": f"{ROOM}/pause:3.10.2", "digest": A}
ETCD = {"name": f"{ROOM}/etcd:3.6.8-0", "digest": B}
PINNED = {"io.cri-containerd.pinned": "pinned", "pai-install/image": "system"}
PINS = {f"pai-install:{image['name']}@{image['digest']}": image["digest"] for image in (PAUSE, ETCD)}
LABELS = "io.cri-containerd.image=managed,io.cri-containerd.pinned=pinned,pai-install/image=system"
LISTED = """\
REF                                                                                                   TYPE                                       DIGEST                                                                  SIZE      PLATFORMS   LABELS                                                                                   
registry.pai.internal/busybox:stable                                                                  application/vnd.oci.image.manifest.v1+json sha256:a85519d12dd57e44bb5b6aee78ef4b02ae7e6fe9b6b838c24685da39e58007ce 321.8 KiB linux/amd64 io.cri-containerd.image=managed                                                          
registry.pai.internal/busybox@sha256:0fffb228b27977d863943e3652824fadcbe6cd267cee23b59a0575cd31fc7ba5 application/vnd.oci.image.manifest.v1+json sha256:0fffb228b27977d863943e3652824fadcbe6cd267cee23b59a0575cd31fc7ba5 1.0 MiB   linux/amd64 io.cri-containerd.image=managed,io.cri-containerd.pinned=pinned,pai-install/image=system 
sha256:13be1610db95681267c5df24929dd501a29501534287b1746c4c224b11d88390                               application/vnd.oci.image.manifest.v1+json sha256:a85519d12dd57e44bb5b6aee78ef4b02ae7e6fe9b6b838c24685da39e58007ce 321.8 KiB linux/amd64 -                                                                                        
"""  # noqa: W291, E501 - as it was printed


class Containerd:
    """Images by name: digest and labels, and what the registry answers: name -> digest. Commands other than `ls`."""

    def __init__(self) -> None:
        self.images: dict[str, tuple[str, dict[str, str]]] = {}
        self.registry: dict[str, str] = {}
        self.done: list[str] = []
        self.answers = True

    def run(self, argv: list[str], **_more: Any) -> subprocess.CompletedProcess[bytes]:
        """In place of subprocess.run."""
        assert argv[:4] == ["/usr/local/bin/ctr", "--namespace", "k8s.io", "images"]
        if not self.answers:
            return subprocess.CompletedProcess(argv, 1, b"", b"level=warning\nctr: failed to dial: no such file\n")
        verb, words = argv[4], argv[5:]
        if verb != "ls":
            self.done.append(" ".join([verb, *words]))
        said = getattr(self, verb)(*words)
        return subprocess.CompletedProcess(argv, 1 if said.startswith("ctr:") else 0, said.encode(), said.encode())

    def ls(self, *filters: str) -> str:
        """Those that one of the filters finds."""
        names = {found for word in filters if (found := word.removeprefix("name==")) != word}
        lines = [
            f"{name} application/vnd.oci.image.manifest.v1+json {digest} 1.0 MiB linux/amd64 "
            + (",".join(f"{key}={value}" for key, value in labels.items()) or "-")
            for name, (digest, labels) in sorted(self.images.items())
            if f'"{name}"' in names
            or ('labels."pai-install/image"==system' in filters and labels.get("pai-install/image") == "system")
        ]
        return "\n".join(["REF TYPE DIGEST SIZE PLATFORMS LABELS", *lines])

    def pull(self, *words: str) -> str:
        """As containerd: labels of an older image of that name are forgotten."""
        name = words[-1]
        assert words[:2] == ("--hosts-dir", "/etc/containerd/certs.d")
        if self.registry.get(name) is None:
            return f'ctr: failed to resolve image: failed to resolve reference "{name}": not found'
        labels = [word for word in words[2:-1] if word != "--label"]
        self.images[name] = (self.registry[name], dict(label.split("=", 1) for label in labels))
        return ""

    def tag(self, force: str, *words: str) -> str:
        """Labels are forgotten, too. A name that is no reference is refused unless nobody checks."""
        assert force == "--force"
        source, name = words[-2:]
        if name.count(":") > 2 and words[0] != "--skip-reference-check":
            return "ctr: invalid reference format"
        self.images[name] = (self.images[source][0], {})
        return name

    def rm(self, name: str) -> str:
        """The content stays for other names."""
        del self.images[name]
        return name

    def label(self, name: str, *words: str) -> str:
        """A label without a value goes."""
        digest, labels = self.images[name]
        changed = {**labels, **dict(word.split("=", 1) for word in words)}
        self.images[name] = (digest, {key: value for key, value in changed.items() if value})
        return ""


@pytest.fixture
def images() -> Any:
    """playbooks/module_utils/pai_images.py."""
    return module_util("pai_images")


@pytest.fixture
def containerd(monkeypatch: pytest.MonkeyPatch) -> Containerd:
    """A machine's containerd, and a registry that has both images."""
    made = Containerd()
    made.registry = {f"{ROOM}/pause@{A}": A, f"{ROOM}/etcd@{B}": B}
    monkeypatch.setattr(subprocess, "run", made.run)
    return made


def test_listing_of_ctr_is_read(images: Any) -> None:
    found = images.parse(LISTED)
    digest = "sha256:0fffb228b27977d863943e3652824fadcbe6cd267cee23b59a0575cd31fc7ba5"
    assert {name: entry.pinned for name, entry in found.items()} == {
        f"{ROOM}/busybox:stable": False,
        f"{ROOM}/busybox@{digest}": True,
        "sha256:13be1610db95681267c5df24929dd501a29501534287b1746c4c224b11d88390": False,
    }
    assert found[f"{ROOM}/busybox@{digest}"].digest == digest
    assert found[f"{ROOM}/busybox:stable"].digest.startswith("sha256:a85519d1")
    assert images.parse("REF TYPE DIGEST SIZE PLATFORMS LABELS\n") == {}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f"{ROOM}/pause:3.10.2", f"{ROOM}/pause@{A}"),
        ("10.0.0.1:5000/a/b:v1", f"10.0.0.1:5000/a/b@{A}"),
        ("10.0.0.1:5000/a/b", f"10.0.0.1:5000/a/b@{A}"),
    ],
)
def test_tag_gives_way_to_the_digest(images: Any, name: str, expected: str) -> None:
    assert images.by_digest(name, A) == expected


def test_fresh_machine_pulls_by_digest_and_pins_a_name_that_nobody_can_pull(
    containerd: Containerd, run_module: Run
) -> None:
    said = run_module("pai_images", images=[PAUSE, ETCD])
    assert said["changed"]
    pulled = {line.split()[-1] for line in containerd.done if line.startswith("pull")}
    assert pulled == {f"{ROOM}/pause@{A}", f"{ROOM}/etcd@{B}"}, "nothing is asked for by its tag"
    for name, digest in ((PAUSE["name"], A), (f"{ROOM}/pause@{A}", A), (ETCD["name"], B), (f"{ROOM}/etcd@{B}", B)):
        assert containerd.images[name] == (digest, {})
    assert {name: held for name, held in containerd.images.items() if held[1]} == {
        name: (digest, PINNED) for name, digest in PINS.items()
    }
    assert said["diff"]["before"] == ""
    assert f"pai-install:{PAUSE['name']}@{A} {A} pinned\n" in said["diff"]["after"]
    assert said["managed"] == [{"kind": "image", **PAUSE}, {"kind": "image", **ETCD}]


def test_second_run_asks_and_changes_nothing(containerd: Containerd, run_module: Run) -> None:
    run_module("pai_images", images=[PAUSE, ETCD])
    containerd.done.clear()
    said = run_module("pai_images", images=[PAUSE, ETCD])
    assert (said["changed"], containerd.done) == (False, [])
    assert said["diff"]["before"] == said["diff"]["after"] == ""


def test_tag_that_points_elsewhere_is_repaired(containerd: Containerd, run_module: Run) -> None:
    """What the registry says of the tag makes no difference; the digest is asked for."""
    containerd.images[PAUSE["name"]] = (B, {"io.cri-containerd.image": "managed"})
    containerd.registry[PAUSE["name"]] = B
    said = run_module("pai_images", images=[PAUSE])
    assert said["diff"]["before"] == f"{PAUSE['name']} {B}\n"
    assert f"{PAUSE['name']} {A}\n" in said["diff"]["after"]
    assert containerd.images[PAUSE["name"]][0] == A


def test_image_that_the_kubelet_pulled_is_pinned_without_the_registry(containerd: Containerd, run_module: Run) -> None:
    managed = {"io.cri-containerd.image": "managed"}
    containerd.images = {PAUSE["name"]: (A, managed), f"{ROOM}/pause@{A}": (A, managed)}
    containerd.registry.clear()
    assert run_module("pai_images", images=[PAUSE])["changed"]
    assert [line.split()[0] for line in containerd.done] == ["tag", "label"]
    assert not run_module("pai_images", images=[PAUSE])["changed"]


def test_image_of_an_earlier_version_is_unpinned_and_that_of_the_admin_is_not(
    containerd: Containerd, run_module: Run
) -> None:
    run_module("pai_images", images=[PAUSE, ETCD])
    theirs = ("example.com/own:1", (B, {"io.cri-containerd.pinned": "pinned"}))
    containerd.images.update([theirs])
    said = run_module("pai_images", images=[PAUSE])
    assert said["diff"]["before"] == f"pai-install:{ETCD['name']}@{B} {B} pinned\n"
    assert said["diff"]["after"] == ""
    assert containerd.images[ETCD["name"]] == (B, {}), "it stays for the containers that run of it"
    assert containerd.images["example.com/own:1"] == theirs[1]
    assert not run_module("pai_images", images=[PAUSE])["changed"]


def test_pin_of_an_earlier_release_is_removed(containerd: Containerd, run_module: Run) -> None:
    """Release 1.0.0 labelled the names that pods use."""
    containerd.images = {ETCD["name"]: (B, PINNED), PAUSE["name"]: (A, PINNED)}
    said = run_module("pai_images", images=[PAUSE])
    assert f"{ETCD['name']} {B}\n" in said["diff"]["after"]
    assert containerd.images[ETCD["name"]] == (B, {})
    assert not run_module("pai_images", images=[PAUSE])["changed"]


@pytest.mark.parametrize("name", [PAUSE["name"], f"{ROOM}/pause@{A}", "example.com/alias:1"])
def test_pull_by_a_member_changes_nothing(
    containerd: Containerd, run_module: Run, managed: Any, images: Any, name: str
) -> None:
    """containerd forgets the labels of an image that a pod with imagePullPolicy Always pulls."""
    expected = run_module("pai_images", images=[PAUSE])["managed"]
    containerd.images[name] = (A, {"io.cri-containerd.image": "managed"})
    assert managed.drift(expected) == []
    assert not run_module("pai_images", images=[PAUSE])["changed"]
    assert images.pinned_names(containerd.images) == images.references([PAUSE])


def test_check_mode_tells_the_same_and_does_nothing(containerd: Containerd, run_module: Run) -> None:
    foreseen = run_module("pai_images", check=True, images=[PAUSE])
    assert containerd.done == []
    assert foreseen == run_module("pai_images", images=[PAUSE]) | {"invocation": foreseen["invocation"]}
    containerd.answers = False
    assert run_module("pai_images", check=True, images=[PAUSE])["changed"], "a machine without containerd"


def test_machine_that_cannot_pull_says_which_image_and_keeps_its_tags(containerd: Containerd, run_module: Run) -> None:
    containerd.images[PAUSE["name"]] = (B, {})
    containerd.registry.clear()
    with pytest.raises(ModuleFailedError, match=re.escape(f"image {ROOM}/pause@{A} cannot be pulled: ctr: failed")):
        run_module("pai_images", images=[PAUSE])
    assert containerd.images == {PAUSE["name"]: (B, {})}


def test_containerd_that_does_not_answer_is_named(
    containerd: Containerd, run_module: Run, managed: Any, snapshot: SnapshotAssertion
) -> None:
    containerd.answers = False
    with pytest.raises(ModuleFailedError, match="cannot be seen: ctr: failed to dial: no such file"):
        run_module("pai_images", images=[PAUSE])
    expected = [{"kind": "image", **PAUSE}, {"kind": "image", **ETCD}]
    assert managed.drift(expected) == snapshot


def test_drift_names_what_became_of_an_image(containerd: Containerd, run_module: Run, managed: Any) -> None:
    expected = run_module("pai_images", images=[PAUSE])["managed"]
    assert managed.drift(expected) == []
    right = dict(containerd.images)
    pin = f"pai-install:{PAUSE['name']}@{A}"
    for changed, sentence in (
        ({PAUSE["name"]: (B, {})}, f"image {PAUSE['name']} is {B} instead of {A}"),
        ({pin: (A, {})}, f"image {PAUSE['name']} is not pinned"),
        ({pin: (B, PINNED)}, f"image {PAUSE['name']} is not pinned"),
    ):
        containerd.images = {**right, **changed}
        assert managed.drift(expected) == [sentence]
    containerd.images = {}
    assert managed.drift(expected) == [f"image {PAUSE['name']} is missing"]


def test_pulling_once_more_keeps_the_pin(containerd: Containerd, run_module: Run, images: Any) -> None:
    """containerd forgets the labels of an image that is pulled again."""
    run_module("pai_images", images=[PAUSE])
    images.repull(f"{ROOM}/pause@{A}")
    assert not run_module("pai_images", images=[PAUSE])["changed"]


IDS = (f"sha256:{'1' * 64}", f"sha256:{'2' * 64}")
SEEN = [
    {"id": IDS[0], "repoTags": [PAUSE["name"]], "repoDigests": [f"{ROOM}/pause@{A}"]},
    {"id": IDS[1], "repoTags": ["example.com/job:1", ETCD["name"]], "repoDigests": []},
]


def container(name: str, asked: str, image: str) -> dict[str, Any]:
    """As `crictl ps --output json` has it."""
    return {"metadata": {"name": name}, "image": {"image": image, "userSpecifiedImage": asked}, "imageRef": image}


@pytest.mark.parametrize("asked", [PAUSE["name"], f"{ROOM}/pause@{A}", f"{PAUSE['name']}@{A}"])
def test_container_that_runs_from_another_image_is_named(images: Any, asked: str) -> None:
    pinned = images.references([PAUSE])
    assert images.others(pinned, SEEN, [container("good", asked, IDS[0])]) == (1, [])
    count, found = images.others(pinned, SEEN, [container("good", asked, IDS[0]), container("bad", asked, IDS[1])])
    assert (count, len(found)) == (2, 1)
    assert found[0].startswith(f"bad ({ROOM}/pause")


def test_containers_of_users_are_not_judged(images: Any) -> None:
    assert images.others(images.references([PAUSE]), SEEN, [container("job", "example.com/job:1", IDS[0])]) == (0, [])
    assert images.others([], SEEN, [container("pause", PAUSE["name"], IDS[1])]) == (0, [])


def test_program_is_the_one_of_the_cluster(images: Any) -> None:
    assert Path(images.CTR[0]).is_absolute(), "whatever else lies on PATH"
