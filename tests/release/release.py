"""From a commit to a release: checks, files, checksums, bills of materials, and the tag."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from pai_install.components.catalogue import load_catalogue
from tests.release.sbom import bom_text, catalogue_components, python_components

VERSION_FILE = "installer/pai_install/__init__.py"
NAME = "pai-install"


class ReleaseError(Exception):
    """A reason not to release, with its remedy."""


def release(root: Path) -> str:
    """Writes the files of the version that the checkout `root` names into dist/, tags its commit, returns the tag.

    Raises ReleaseError when the checkout is not fit for a release, CalledProcessError when a program fails.
    """
    version = _version(root)
    tag = f"v{version}"
    _require_fit(root, version, tag)
    dist = root / "dist"
    for old in dist.glob("*"):
        old.unlink()
    made = datetime.fromtimestamp(int(_git(root, "log", "-1", "--format=%ct")), UTC)
    _build(root, dist, made)
    _write_boms(root, dist, version, made)
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(dist.iterdir())]
    (dist / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")
    _git(root, "tag", "--annotate", tag, "--message", f"{NAME} {version}")
    return tag


def _version(root: Path) -> str:
    found = re.search(r'^__version__ = "(.+)"$', (root / VERSION_FILE).read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise ReleaseError(f"cannot read the version from {VERSION_FILE}")
    return found[1]


def _require_fit(root: Path, version: str, tag: str) -> None:
    if changed := _git(root, "status", "--porcelain"):
        raise ReleaseError(f"the checkout has changes; commit or remove them:\n{changed}")
    if _git(root, "tag", "--list", tag):
        raise ReleaseError(f"the tag {tag} exists; raise __version__ in {VERSION_FILE}")
    sections = _changes(root)
    if not any(re.fullmatch(rf"\[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d", title) for title in sections):
        raise ReleaseError(f"CHANGELOG.md has no section `## [{version}] - DATE`; rename [Unreleased]")
    if "- " in sections.get("[Unreleased]", ""):
        raise ReleaseError(f"CHANGELOG.md has entries in [Unreleased]; move them to [{version}]")


def _changes(root: Path) -> dict[str, str]:
    """Title of a section -> its text."""
    parts = re.split(r"^## (.+)\n", (root / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def _build(root: Path, dist: Path, made: datetime) -> None:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(int(made.timestamp()))}
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(dist), str(root)]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)


def _write_boms(root: Path, dist: Path, version: str, made: datetime) -> None:
    packages = python_components((root / "requirements.lock").read_text(encoding="utf-8"))
    programs = catalogue_components(load_catalogue())
    for part, components in (("python", packages), ("components", programs)):
        text = bom_text(NAME, version, components, made)
        (dist / f"{NAME}-{version}-{part}.cdx.json").write_text(text, encoding="utf-8")


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True).stdout.strip()
