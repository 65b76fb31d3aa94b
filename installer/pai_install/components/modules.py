"""The source for controller hosts that reach only a package proxy: builds everything from verified modules."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pai_install.components import manifests, userland
from pai_install.components.build import build_c, build_go, downloads, fill, module_files, take_deb
from pai_install.components.catalogue import (
    WRAPPERS,
    Catalogue,
    CBuild,
    Component,
    DebBuild,
    FileSpec,
    GoBuild,
    ImageSpec,
    PythonBuild,
)
from pai_install.components.image import (
    ImageConfig,
    Layer,
    LayerEntry,
    place,
    read_layer,
    write_archive,
    write_image,
    write_layer,
)
from pai_install.components.model import Architecture, PinnedComponent, SourceName
from pai_install.components.source import BuildContext, box_architecture, recipe_key
from pai_install.components.store import CacheEntry, Contents, StagedFile, StagedImage, StagedManifest
from pai_install.errors import PaiError

# Part of the key of everything assembled here: raise it when the same programs give other files or images.
RECIPE = 1
# The Go client's cache of compiled packages reaches about 12 GB over all components. With this much free it is kept
# until the last one is built: they share Go's own packages.
ROOMY_MB = 30_000
# folders of the scratch folder: compiled packages, and modules of the next component
_COMPILED, _NEXT = "cache", "next"


class Modules:
    """Builds programs with the Go client and assembles archives and images from them."""

    def __init__(
        self, catalogue: Catalogue, architecture: Architecture | None = None, wrappers: Path = WRAPPERS
    ) -> None:
        self._catalogue = catalogue
        self._architecture = architecture or box_architecture()
        self._wrappers = wrappers

    @property
    def name(self) -> SourceName:
        """The word for it in the site's configuration."""
        return "modules"

    def key(self, pick: PinnedComponent) -> str:
        """Over the programs' key and all that is put around them."""
        component = self._component(pick)
        images = component.images.values()
        return recipe_key(
            pick.component,
            pick.version,
            {
                "recipe": RECIPE,
                "programs": self.programs_key(pick),
                "files": {
                    name: spec.model_dump(include={"kind", "programs", "folder"})
                    for name, spec in component.files.items()
                },
                "images": {name: _image_recipe(spec) for name, spec in component.images.items()},
                "userland": self.userland_key() if any(image.userland for image in images) else "",
                **manifests.recipe(component, pick.version),
            },
        )

    def programs_key(self, pick: PinnedComponent) -> str:
        """Over the build's description and the wrapper's go.mod and go.sum, not over the Go that builds."""
        wrapper = self._wrapper(pick)
        texts = [(wrapper / name).read_text() for name in ("go.mod", "go.sum")] if wrapper.exists() else []
        build = self._recipe(pick).model_dump(exclude={"disk_mb", "debian"})
        recipe = {"build": build, "version": pick.version, "on": self._architecture, "wrapper": texts}
        return recipe_key(f"programs-{pick.component}", pick.version, recipe)

    def userland_key(self) -> str:
        """Over the names of the packages: their versions are those of the day the layer was made."""
        recipe = {
            "recipe": userland.RECIPE,
            "packages": self._catalogue.userland.packages,
            "on": self._architecture,
        }
        return recipe_key("userland", str(userland.RECIPE), recipe)

    def pinned(self, pick: PinnedComponent) -> Mapping[str, str]:
        """Returns {}, because the sums of the sources protect a compiled program."""
        del pick
        return {}

    def debian_packages(self, pick: PinnedComponent) -> tuple[str, ...]:
        """Returns the packages for compiling and unpacking."""
        build, images = self._recipe(pick), self._component(pick).images.values()
        packaged = isinstance(build, DebBuild) or any(image.userland or image.packages for image in images)
        return (*build.debian, *(("apt", "dpkg") if packaged else ()))

    def disk_mb(self, pick: PinnedComponent) -> int:
        """As measured, caches of the Go client included."""
        return self._recipe(pick).disk_mb

    @contextmanager
    def prefetch(self, pick: PinnedComponent, context: BuildContext) -> Iterator[None]:
        """Downloads the modules of programs beside the block, which compiles others, while there is space for both."""
        build, scratch = self._recipe(pick), context.scratch / _NEXT
        built = context.store.lookup(self.programs_key(pick), context.progress)
        if built or not isinstance(build, GoBuild) or not _is_roomy(context.scratch):
            yield
            return
        with downloads(build, self._wrapper(pick), self._catalogue.go, replace(context, scratch=scratch)) as modules:
            yield
        own = context.scratch / modules.name
        shutil.rmtree(own, ignore_errors=True)
        modules.rename(own)

    def produce(self, pick: PinnedComponent, staged: Path, context: BuildContext) -> Contents:
        """Builds uncached programs, then assembles the entry."""
        try:
            return self._produce(pick, staged, context)
        finally:
            _drop_caches(context.scratch)

    def _produce(self, pick: PinnedComponent, staged: Path, context: BuildContext) -> Contents:
        component = self._component(pick)
        built = self._programs(pick, context)
        programs = {artifact.name: artifact.path for artifact in built.files}
        files = [_file(name, pick.version, spec, programs, staged / "files") for name, spec in component.files.items()]
        images = [
            self._image(name, pick.version, spec, programs, staged / "images", context)
            for name, spec in component.images.items()
        ]
        return Contents(tuple(files), tuple(images), self.stage_manifests(pick, staged / "manifests", context))

    def stage_manifests(self, pick: PinnedComponent, folder: Path, context: BuildContext) -> tuple[StagedManifest, ...]:
        """Creates the manifests of a component below a folder. They need no programs. Raises PaiError."""
        component, wrapper, go = self._component(pick), self._wrapper(pick), self._catalogue.go
        return manifests.assemble(
            component, pick.version, folder, lambda spec, _name: module_files(spec, wrapper, go, context)
        )

    def _component(self, pick: PinnedComponent) -> Component:
        return self._catalogue.components[pick.component]

    def _recipe(self, pick: PinnedComponent) -> GoBuild | CBuild | DebBuild:
        build = self._component(pick).build
        if build is None or isinstance(build, PythonBuild):
            raise PaiError(
                f"cannot build {pick.component} from modules: it exists only as an image",
                code="component-not-buildable",
            )
        return build

    def _wrapper(self, pick: PinnedComponent) -> Path:
        named = self._component(pick).versions[pick.version].wrapper
        return self._wrappers / (named or f"{pick.component}-{pick.version}")

    def _programs(self, pick: PinnedComponent, context: BuildContext) -> CacheEntry:
        key = self.programs_key(pick)
        known = context.store.lookup(key, context.progress)
        if known:
            return known
        with context.store.staging(key) as staged:
            self._build(pick, context, staged)
            programs = [StagedFile(path.name, pick.version, "binary", path) for path in sorted(staged.iterdir())]
            return context.store.publish(key, staged, Contents(tuple(programs)))

    def _build(self, pick: PinnedComponent, context: BuildContext, out: Path) -> None:
        build, wrapper, go = self._recipe(pick), self._wrapper(pick), self._catalogue.go
        if isinstance(build, GoBuild):
            build_go(build, pick.version, wrapper, go, context, out)
        elif isinstance(build, CBuild):
            build_c(build, pick.version, wrapper, go, context, out)
        else:
            take_deb(build, context, out)

    def _image(
        self,
        name: str,
        version: str,
        spec: ImageSpec,
        programs: Mapping[str, Path],
        folder: Path,
        context: BuildContext,
    ) -> StagedImage:
        tag = fill(spec.tag, version)
        context.progress(f"{name}:{tag}: assembling the image")
        layers = [self._userland(context)] if spec.userland else []
        below = _own_packages(spec, context) if spec.packages else _base(spec)
        own = write_layer([*below, *_program_nodes(spec, programs)], context.scratch / "layers")
        layout = folder / name
        env = tuple(f"{variable}={value}" for variable, value in spec.env.items())
        config = ImageConfig((next(iter(spec.programs.values())),), spec.user, env)
        digest = write_image(layout, [*layers, own], config, tag, self._architecture)
        return StagedImage(name, tag, digest, layout)

    def _userland(self, context: BuildContext) -> Layer:
        key = self.userland_key()
        known = context.store.lookup(key, context.progress)
        if known:
            return read_layer(known.path("layer"))
        folder = context.scratch / "userland"
        packages = userland.fetch_packages(self._catalogue.userland.packages, folder, context.progress)
        userland.unpack(packages, folder / "root")
        nodes = [*userland.userland_nodes(folder / "root"), *userland.base_nodes()]
        with context.store.staging(key) as staged:
            layer = write_layer(nodes, folder)
            place(layer.path, staged / "layer.tar.gz")
            file = StagedFile("layer", str(userland.RECIPE), "tar.gz", staged / "layer.tar.gz")
            entry = context.store.publish(key, staged, Contents((file,)))
        shutil.rmtree(folder)
        return read_layer(entry.path("layer"))


def _drop_caches(scratch: Path) -> None:
    """Empties the scratch folder. Compiled packages stay for the next component while there is space."""
    kept = (_COMPILED, _NEXT) if _is_roomy(scratch) else (_NEXT,)
    for path in scratch.iterdir():
        if path.name not in kept:
            shutil.rmtree(path, ignore_errors=True)


def _is_roomy(scratch: Path) -> bool:
    return shutil.disk_usage(scratch).free >> 20 > ROOMY_MB


def _file(name: str, version: str, spec: FileSpec, programs: Mapping[str, Path], folder: Path) -> StagedFile:
    folder.mkdir(parents=True, exist_ok=True)
    if spec.kind == "binary":
        target = folder / name
        place(programs[spec.programs[0]], target)
        return StagedFile(name, version, "binary", target)
    target = folder / f"{name}.tar.gz"
    prefix = f"{spec.folder}/" if spec.folder else "./"
    nodes = [LayerEntry(f"{prefix}{program}", 0o755, programs[program]) for program in spec.programs]
    write_archive(nodes, target, folders=False)
    return StagedFile(name, version, "tar.gz", target)


def _image_recipe(spec: ImageSpec) -> dict[str, object]:
    """An image without variables or packages keeps the key that it had before there were any."""
    unused = {name for name in ("env", "packages") if not getattr(spec, name)}
    return spec.model_dump(exclude={"from_", *unused})


def _base(spec: ImageSpec) -> list[LayerEntry]:
    return [] if spec.userland else userland.base_nodes()


def _own_packages(spec: ImageSpec, context: BuildContext) -> list[LayerEntry]:
    """Returns the files of the image's packages below its programs, without the programs, which have another path."""
    folder = context.scratch / "packages"
    shutil.rmtree(folder, ignore_errors=True)
    packages = userland.fetch_packages(spec.packages, folder, context.progress)
    nodes = userland.own_nodes(spec.packages, packages, folder)
    return [node for node in nodes if node.path.rpartition("/")[2] not in spec.programs]


def _place(spec: ImageSpec, place_: str) -> str:
    """Where a program lies in the layer. Above packages /bin and the like are links into /usr."""
    path = place_.removeprefix("/")
    return f"usr/{path}" if spec.packages and path.split("/", maxsplit=1)[0] in userland.MERGED else path


def _program_nodes(spec: ImageSpec, programs: Mapping[str, Path]) -> list[LayerEntry]:
    places = {program: _place(spec, place_) for program, place_ in spec.programs.items()}
    nodes = [LayerEntry(place_, 0o755, programs[program]) for program, place_ in places.items()]
    program, first = next(iter(places.items()))
    folder = first.rpartition("/")[0]
    return [*nodes, *(LayerEntry(f"{folder}/{applet}", link=program) for applet in spec.applets)]
