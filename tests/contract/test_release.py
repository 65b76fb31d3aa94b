"""`make release`: its files, what they say, and when it refuses."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from pai_install.components.catalogue import LOCKS, load_catalogue
from tests.release.release import VERSION_FILE, ReleaseError, release

ROOT = Path(__file__).parents[2]
VERSION = "99.1.0"


def git(folder: Path, *words: str) -> str:
    """What git prints."""
    author = ["-c", "user.name=test", "-c", "user.email=test@example.com"]
    return subprocess.run(["git", *author, *words], cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of the last commit, fit for a release."""
    if subprocess.run(["git", "rev-parse"], cwd=ROOT, capture_output=True, check=False).returncode != 0:
        pytest.skip("no checkout of git")
    folder = tmp_path_factory.mktemp("release") / "clone"
    git(ROOT, "clone", "--quiet", "--shared", str(ROOT), str(folder))
    git(folder, "config", "user.name", "test")
    git(folder, "config", "user.email", "test@example.com")
    (folder / VERSION_FILE).write_text(f'"""A release."""\n\n__version__ = "{VERSION}"\n')
    log = folder / "CHANGELOG.md"
    text = re.sub(r"^## \[Unreleased\]$", "## Before", log.read_text(), flags=re.MULTILINE)
    log.write_text(f"{text}\n## [Unreleased]\n\n## [{VERSION}] - 2026-11-26\n\n- One.\n")
    git(folder, "commit", "--quiet", "--all", "--message", "Release")
    return folder


@pytest.fixture(scope="module")
def dist(clone: Path) -> Path:
    """The files of the release."""
    assert release(clone) == f"v{VERSION}"
    return clone / "dist"


def test_files_are_complete_and_have_checksums(dist: Path) -> None:
    names = {path.name for path in dist.iterdir()}
    assert names == {
        "SHA256SUMS",
        f"pai-install-{VERSION}-components.cdx.json",
        f"pai-install-{VERSION}-python.cdx.json",
        f"pai_install-{VERSION}-py3-none-any.whl",
        f"pai_install-{VERSION}.tar.gz",
    }
    sums = dict(line.split("  ")[::-1] for line in (dist / "SHA256SUMS").read_text().splitlines())
    assert sums == {name: hashlib.sha256((dist / name).read_bytes()).hexdigest() for name in names - {"SHA256SUMS"}}


def test_commit_is_tagged(clone: Path, dist: Path) -> None:
    assert dist.is_dir()
    assert git(clone, "rev-parse", f"v{VERSION}^{{commit}}") == git(clone, "rev-parse", "HEAD")
    assert git(clone, "cat-file", "-t", f"v{VERSION}").strip() == "tag"


def test_source_archive_is_the_checkout(clone: Path, dist: Path) -> None:
    with tarfile.open(dist / f"pai_install-{VERSION}.tar.gz") as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names - {"PKG-INFO"} == set(git(clone, "ls-files").splitlines())


@pytest.mark.parametrize("part", ["python", "components"])
def test_bill_of_materials_is_valid(dist: Path, part: str) -> None:
    text = (dist / f"pai-install-{VERSION}-{part}.cdx.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None


def test_files_depend_on_nothing_but_the_commit(clone: Path, dist: Path) -> None:
    sums = (dist / "SHA256SUMS").read_text()
    git(clone, "tag", "--delete", f"v{VERSION}")
    release(clone)
    assert (dist / "SHA256SUMS").read_text() == sums


def test_bills_of_materials_have_every_checksum(dist: Path) -> None:
    def sums(part: str) -> set[str]:
        return set(re.findall(r"\b[0-9a-f]{64}\b", (dist / f"pai-install-{VERSION}-{part}.cdx.json").read_text()))

    assert sums("python") == set(re.findall("sha256:([0-9a-f]{64})", (ROOT / "requirements.lock").read_text()))
    releases = [release for it in load_catalogue().components.values() for release in it.versions.values()]
    files = {digest for it in releases for of_file in it.sha256.values() for digest in of_file.values()}
    images = {digest.removeprefix("sha256:") for it in releases for digest in it.digests.values()} - {"unknown"}
    wheels = {
        digest for lock in LOCKS.glob("*.lock") for digest in re.findall("sha256:([0-9a-f]{64})", lock.read_text())
    }
    assert sums("components") == files | images | wheels


def test_bills_of_materials_name_every_package_and_program(dist: Path) -> None:
    def components(part: str) -> set[tuple[str, str]]:
        found = json.loads((dist / f"pai-install-{VERSION}-{part}.cdx.json").read_text())["components"]
        return {(one["name"], one["version"]) for one in found}

    locked = re.findall(r"^(\S+)==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert components("python") == set(locked)
    programs = {(name, version) for name, it in load_catalogue().components.items() for version in it.versions}
    assert components("components") == programs


def uncommitted(folder: Path) -> None:
    """A file that is in no commit."""
    (folder / "new").touch()


def tagged(folder: Path) -> None:
    """The version was released before."""
    git(folder, "tag", f"v{VERSION}")


def without_section(folder: Path) -> None:
    """The changelog knows another version."""
    edit(folder, f"[{VERSION}]", "[98.0.0]")


def with_other_entries(folder: Path) -> None:
    """The changelog has entries that belong to no version."""
    edit(folder, "## [Unreleased]\n", "## [Unreleased]\n\n- Two.\n")


def edit(folder: Path, old: str, new: str) -> None:
    """Commits another changelog."""
    log = folder / "CHANGELOG.md"
    log.write_text(log.read_text().replace(old, new))
    git(folder, "commit", "--quiet", "--all", "--message", "Edit")


@pytest.mark.parametrize("spoil", [uncommitted, tagged, without_section, with_other_entries])
def test_unfit_checkout_is_refused(clone: Path, tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    folder = tmp_path / "clone"
    git(clone, "clone", "--quiet", "--no-tags", str(clone), str(folder))
    spoil(folder)
    tags = git(folder, "tag")
    with pytest.raises(ReleaseError):
        release(folder)
    assert not (folder / "dist").exists()
    assert git(folder, "tag") == tags
