"""Bills of materials in CycloneDX: the Python packages of pai-install, and the components that it installs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, Property, XsUri
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from pai_install.components.catalogue import Catalogue, ImageSpec, PythonBuild, Release
from pai_install.components.catalogue import Component as Program

_PACKAGE = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>\S+)(?: ; (?P<marker>.*?))? \\$")
_HASH = re.compile(r"^    --hash=sha256:(?P<digest>[0-9a-f]{64})")


def python_components(lock: str) -> list[Component]:
    """The packages of a requirements file as `uv pip compile --generate-hashes` writes it."""
    return [_package(**found.groupdict(), digests=digests) for found, digests in _locked(lock)]


def catalogue_components(catalogue: Catalogue) -> list[Component]:
    """Each program of the catalogue in each version, with the downloads and images that upstream publishes."""
    return [
        _program(name, program, version, release)
        for name, program in catalogue.components.items()
        for version, release in program.versions.items()
    ]


def bom_text(subject: str, version: str, components: Iterable[Component], made: datetime) -> str:
    """The JSON document of what `subject` consists of; equal arguments give equal text."""
    root = Component(name=subject, version=version, type=ComponentType.APPLICATION, bom_ref=f"{subject}@{version}")
    identity = uuid5(NAMESPACE_URL, f"{subject}@{version}/{made.isoformat()}")
    metadata = BomMetaData(component=root, timestamp=made.astimezone(UTC))
    bom = Bom(serial_number=identity, metadata=metadata, components=components)
    bom.register_dependency(root, bom.components)
    return JsonV1Dot6(bom).output_as_string(indent=2) + "\n"


def _locked(lock: str) -> list[tuple[re.Match[str], list[str]]]:
    """The packages of the lock file with the digests of their files."""
    found: list[tuple[re.Match[str], list[str]]] = []
    for line in lock.splitlines():
        if package := _PACKAGE.match(line):
            found.append((package, []))
        elif digest := _HASH.match(line):
            found[-1][1].append(digest["digest"])
        elif line and not line.startswith("    #"):
            raise ValueError(f"cannot read line of lock file: {line}")
    return found


def _package(*, name: str, version: str, marker: str | None, digests: Iterable[str]) -> Component:
    url = PackageURL("pypi", name=name, version=version)
    files = ExternalReference(
        type=ExternalReferenceType.DISTRIBUTION,
        url=XsUri(f"https://pypi.org/project/{name}/{version}/"),
        hashes=[_sha256(digest) for digest in digests],
    )
    properties = [Property(name="pai-install:marker", value=marker)] if marker else []
    return Component(
        name=name, version=version, purl=url, bom_ref=str(url), external_references=[files], properties=properties
    )


def _program(name: str, program: Program, version: str, release: Release) -> Component:
    identity = f"{name}@{version}"
    return Component(
        name=name,
        version=version,
        type=ComponentType.APPLICATION,
        bom_ref=identity,
        description=program.summary,
        licenses=[DisjunctiveLicense(id=program.licence)],
        external_references=[
            ExternalReference(type=ExternalReferenceType.WEBSITE, url=XsUri(program.home)),
            *_downloads(program, version, release),
        ],
        components=[
            *(_image(identity, spec, version, release.digest(key)) for key, spec in program.images.items()),
            *(python_components(program.build.lock_file.read_text()) if isinstance(program.build, PythonBuild) else ()),
        ],
    )


def _downloads(program: Program, version: str, release: Release) -> Iterator[ExternalReference]:
    for name, spec in program.files.items():
        for key, url in spec.downloads(name).items():
            for architecture, digest in release.sha256.get(key, {}).items():
                place = XsUri(url.format(version=version, arch=architecture))
                yield ExternalReference(
                    type=ExternalReferenceType.DISTRIBUTION, url=place, hashes=[_sha256(digest)], comment=architecture
                )


def _image(owner: str, spec: ImageSpec, version: str, digest: str) -> Component:
    tag = spec.tag.format(version=version)
    name = spec.from_.rpartition("/")[2]
    url = PackageURL("oci", name=name, version=digest or None, qualifiers={"repository_url": spec.from_, "tag": tag})
    return Component(
        name=spec.from_,
        version=tag,
        type=ComponentType.CONTAINER,
        bom_ref=f"{owner}/{name}",
        purl=url,
        hashes=[_sha256(digest.removeprefix("sha256:"))] if digest else [],
    )


def _sha256(digest: str) -> HashType:
    return HashType(alg=HashAlgorithm.SHA_256, content=digest)
