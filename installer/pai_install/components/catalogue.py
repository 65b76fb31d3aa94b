"""Reads catalogue.yml: which third-party programs exist, at which versions, and how each source yields them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from pai_install.components.model import Architecture, FileKind, PinnedComponent, Selection, SourceName
from pai_install.errors import ExitCode, PaiError
from pai_install.system.yaml import load_yaml

HERE = Path(__file__).parent
LOCKS = HERE / "locks"
CATALOGUE_FILE = HERE / "catalogue.yml"
WRAPPERS = HERE / "wrappers"

Family = Literal["modules", "upstream"]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Digest = Annotated[str, Field(pattern=r"^(sha256:[0-9a-f]{64}|unknown)$")]
UNKNOWN = "unknown"
Version = Annotated[str, Field(pattern=r"^[0-9a-z][0-9a-z.]*$")]


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class FileSpec(_Entry):
    """A file artefact.

    url, member: upstream's file, and the file inside that archive if it is not the file itself.
    packages: instead of url, Debian packages with the programs. programs: programs that `modules` builds.
    not_upstream: programs that upstream does not publish. folder: folder inside the archive.
    """

    kind: FileKind
    programs: tuple[str, ...]
    url: str = ""
    member: str = ""
    packages: Mapping[str, str] = {}
    not_upstream: tuple[str, ...] = ()
    folder: str = ""

    def downloads(self, name: str) -> Mapping[str, str]:
        """The upstream downloads: key of the sum -> url template."""
        return self.packages or {name: self.url}


class ImageSpec(_Entry):
    """An image. `from_`: its upstream reference. programs: program -> its path in the image of `modules`.

    The first program is the entrypoint. userland: with the packages of the catalogue's userland.
    packages: instead, its own Debian packages, with the libraries that they need. A name with `*` is a pattern of
    dependencies that are needed completely.
    applets: names of links to the first program. env: relevant environment of upstream's image.
    A component without `build` has only tag and from_.
    """

    tag: str
    from_: Annotated[str, Field(alias="from")]
    programs: Mapping[str, str] = {}
    userland: bool = False
    packages: tuple[str, ...] = ()
    applets: tuple[str, ...] = ()
    user: str = ""
    env: Mapping[str, str] = {}


class ManifestSpec(_Entry):
    """Kubernetes objects of the component, as upstream publishes them. Add-ons patch them and never copy them.

    module: the Go module with `files`. url: upstream's address of each file, with {version}, {file}.
    """

    module: str
    files: tuple[str, ...]
    url: str


class _Build(_Entry):
    """debian: packages the box needs. disk_mb: free disk needed while building, caches included."""

    debian: tuple[str, ...] = ()
    disk_mb: int


class GoBuild(_Build):
    """Programs built by the Go client. stamps: variable -> value set by the linker."""

    kind: Literal["go"]
    packages: tuple[str, ...]
    rename: Mapping[str, str] = {}
    cgo: bool = False
    static: bool = False
    tags: tuple[str, ...] = ()
    linker: tuple[str, ...] = ()
    stamps: Mapping[str, str] = {}


class CBuild(_Build):
    """One program from C files that a Go module carries."""

    kind: Literal["c"]
    module: str
    sources: tuple[str, ...]
    flags: tuple[str, ...]
    program: str


class DebBuild(_Build):
    """One program from a Debian package or from a dependency of it. member: a path or a pattern."""

    kind: Literal["deb"]
    package: str
    member: str
    program: str


class PythonBuild(_Build):
    """An image of pai-install itself: Python, wheels of PyPI, and the library. It is the same for every source.

    image: its name. packages: Debian packages of Python, as in ImageSpec. left_out: patterns of names of their files
    and folders that stay out of the image. lock: a file of locks/. licences: wheel -> its licence. without: folders of
    the library that stay out of the image. module: what a container runs.
    """

    kind: Literal["python"]
    image: str
    packages: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    lock: str
    licences: Mapping[str, str]
    without: tuple[str, ...] = ()
    module: str
    user: str

    @property
    def lock_file(self) -> Path:
        """The requirements with the sums of their wheels."""
        return LOCKS / self.lock


class Release(_Entry):
    """One pinned version. modules: it can be built. sha256: download -> architecture -> sum.

    wrapper: folder below wrappers/ if it is not COMPONENT-VERSION. manifests: manifest -> file -> sum, the same for
    every source. digests: image -> upstream digest of its tag (index or manifest), "unknown" without a public record:
    then the registry decides.
    """

    modules: bool = False
    wrapper: str = ""
    sha256: Mapping[str, Mapping[Architecture, Sha256]] = {}
    manifests: Mapping[str, Mapping[str, Sha256]] = {}
    digests: Mapping[str, Digest] = {}

    def digest(self, image: str) -> str:
        """Returns the pinned digest of an image, or ""."""
        digest = self.digests.get(image, UNKNOWN)
        return "" if digest == UNKNOWN else digest


Build = Annotated[GoBuild | CBuild | DebBuild | PythonBuild, Field(discriminator="kind")]


class Component(_Entry):
    """One third-party program (or a family released together). build: None where there is only its makers' image.

    lacks: architecture -> why upstream has no image for it.
    """

    summary: str
    licence: str
    home: str
    default: Mapping[Family, Version] = {}
    files: Mapping[str, FileSpec] = {}
    images: Mapping[str, ImageSpec] = {}
    manifests: Mapping[str, ManifestSpec] = {}
    build: Build | None = None
    lacks: Mapping[Architecture, str] = {}
    versions: Mapping[Version, Release]

    @property
    def image_names(self) -> tuple[str, ...]:
        """The names of its images, also of one that is put together here."""
        return (self.build.image,) if isinstance(self.build, PythonBuild) else tuple(self.images)

    @property
    def wheels(self) -> Mapping[str, str]:
        """Python package -> its licence, for an image that is put together here."""
        return self.build.licences if isinstance(self.build, PythonBuild) else {}

    def has(self, version: str, family: Family) -> bool:
        """Whether sources of this family can yield that version."""
        release = self.versions.get(version)
        if release is None:
            return False
        if family == "modules":
            return release.modules
        wanted = {key for name, spec in self.files.items() for key in spec.downloads(name)}
        return wanted <= set(release.sha256) and self.manifests.keys() <= release.manifests.keys()

    def lack(self, version: str, family: Family, architecture: Architecture) -> str:
        """Returns why sources of this family lack that version for an architecture, or ""."""
        if family == "modules":
            return ""
        sums = self.versions[version].sha256
        unpinned = [key for key, pinned in sums.items() if architecture not in pinned]
        return self.lacks.get(architecture) or (f"no checksum of {', '.join(unpinned)} is known" if unpinned else "")


class GoToolchain(_Entry):
    """The Go version that builds, and the checksum database's value of its toolchain module."""

    version: Version
    toolchain: Mapping[Architecture, str]


class Userland(_Entry):
    """Debian packages below images that call other programs."""

    packages: tuple[str, ...]


class KubernetesSet(_Entry):
    """The patch version of a minor version per family, and the components that its kubeadm requires."""

    kubernetes: Mapping[Family, Version]
    with_: Annotated[Mapping[str, Version], Field(alias="with")]


class KubernetesSets(_Entry):
    """The minor versions that can be installed."""

    default: str
    sets: Mapping[str, KubernetesSet]


class Catalogue(_Entry):
    """The whole of catalogue.yml. servers: host of upstream -> hosts of its redirects, with `*` for variable parts."""

    schema_version: Literal[1]
    go: GoToolchain
    servers: Mapping[str, tuple[str, ...]] = {}
    userland: Userland
    kubernetes: KubernetesSets
    components: Mapping[str, Component]


@cache
def load_catalogue(path: Path = CATALOGUE_FILE) -> Catalogue:
    """Returns the catalogue. Raises pydantic's ValidationError for an invalid file, which is a bug in pai-install."""
    return Catalogue.model_validate(load_yaml(path.read_text(encoding="utf-8")))


def family_of(source: SourceName) -> Family:
    """Returns the family of a source. A mirror has the content of upstream."""
    return "modules" if source == "modules" else "upstream"


def resolve(
    catalogue: Catalogue,
    kubernetes_version: str = "",
    source: SourceName = "modules",
    needed: Collection[str] | None = None,
    given: Collection[str] = (),
    *,
    installed: Mapping[str, str] | None = None,
    architecture: Architecture | None = None,
) -> Selection:
    """Selects components and their versions.

    kubernetes_version: "1.36" (the newest patch of the source), "1.36.3", or empty for the default minor version.
    needed: names in the catalogue, None for all that the source has. given: components with files in the site, for any
    source.
    installed: versions to keep, whatever the defaults are. A minor version is enough for Kubernetes. architecture: of
    the machines, None for any.
    Raises PaiError (site invalid) if the source lacks this version or a needed component.
    """
    stays = installed or {}
    wanted = stays.get("kubernetes") or kubernetes_version or catalogue.kubernetes.default
    family = family_of(source)
    exact = exact_kubernetes(catalogue, wanted, family)
    # Installed versions override those that come with the Kubernetes version.
    pinned = {**catalogue.kubernetes.sets[_minor(exact)].with_, **stays, "kubernetes": exact}
    families: dict[str, Family] = {name: "upstream" if name in given else family for name in catalogue.components}
    versions = {name: pinned.get(name) or it.default.get(families[name]) for name, it in catalogue.components.items()}
    had = {name: version for name, version in versions.items() if version is not None}
    lacking = set(needed or ()).difference(had)
    if lacking:
        raise PaiError(
            (f"cannot build {', '.join(sorted(lacking))}: the component source {source} has no sources of them"),
            code="components-not-in-source",
            remedy="set component_source to upstream, mirror, or a bundle, or set component_images",
            exit_code=ExitCode.SITE_INVALID,
        )
    picks = [PinnedComponent(name, version) for name, version in had.items() if needed is None or name in needed]
    _require_installed(catalogue, [one for one in picks if one.component in stays], source, families)
    refused = {
        name: why
        for name in had
        if name not in given and (why := _lack(catalogue, name, had[name], family, architecture))
    }
    wrong = {f"{name} {had[name]}": refused[name] for name in sorted(refused.keys() & set(needed or ()))}
    _require_architecture(wrong, source, architecture)
    return Selection(exact, source, tuple(one for one in picks if one.component not in refused))


def exact_kubernetes(catalogue: Catalogue, wanted: str, family: Family) -> str:
    """The exact version for "1.36" or "v1.36.3". Raises PaiError (site invalid) where the family lacks it."""
    version = wanted.removeprefix("v")
    chosen = catalogue.kubernetes.sets.get(_minor(version))
    if chosen is None:
        raise _unknown(catalogue, version, family)
    exact = chosen.kubernetes[family] if version == _minor(version) else version
    if not catalogue.components["kubernetes"].has(exact, family):
        raise _unknown(catalogue, version, family)
    return exact


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _require_installed(
    catalogue: Catalogue, picks: Collection[PinnedComponent], source: SourceName, families: Mapping[str, Family]
) -> None:
    gone = [one for one in picks if not catalogue.components[one.component].has(one.version, families[one.component])]
    if gone:
        raise no_longer(gone, f"this version of pai-install (component source {source})")


def _require_architecture(refused: Mapping[str, str], source: SourceName, architecture: Architecture | None) -> None:
    if refused:
        raise PaiError(
            f"cannot fetch components for {architecture} from the source {source}: "
            + ", ".join(f"{name} ({why})" for name, why in refused.items()),
            code="components-not-for-architecture",
            remedy="set component_source: modules, or set component_images",
            exit_code=ExitCode.SITE_INVALID,
        )


def _lack(catalogue: Catalogue, name: str, version: str, family: Family, architecture: Architecture | None) -> str:
    return catalogue.components[name].lack(version, family, architecture) if architecture else ""


def no_longer(picks: Collection[PinnedComponent], where: str) -> PaiError:
    """The error for installed versions that are no longer available."""
    return PaiError(
        (
            f"cannot find {', '.join(f'{one.component} {one.version}' for one in picks)} in {where}: the"
            " machines run these versions"
        ),
        code="installed-components-not-in-source",
        remedy=("run pai-install upgrade. Until then, use the pai-install version or the bundle that installed them"),
        exit_code=ExitCode.PREFLIGHT_FAILED,
    )


def _unknown(catalogue: Catalogue, wanted: str, family: Family) -> PaiError:
    kubernetes = catalogue.components["kubernetes"]
    known = ", ".join(version for version in kubernetes.versions if kubernetes.has(version, family))
    return PaiError(
        f"cannot find Kubernetes {wanted} in the component source ({family})",
        code="kubernetes-version-not-in-source",
        remedy=f"choose a version: {', '.join(catalogue.kubernetes.sets)}, {known}",
        exit_code=ExitCode.SITE_INVALID,
    )
