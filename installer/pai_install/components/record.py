"""Validation of foreign entry records and bundle indexes: names and inner paths."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from pai_install.components.model import FileKind

SCHEMA_VERSION = 1


def _inside(path: str) -> str:
    """A path that stays below the folder that it is joined to, in its shortest form."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or str(pure) != path or not path.isprintable():
        raise ValueError("is no path inside the entry")
    return path


Inside = Annotated[str, AfterValidator(_inside)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=200)]
Repository = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*$", max_length=200)]
Version = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$", max_length=128)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{1,64}$")]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class FileRecord(_Model):
    """A program."""

    name: Name
    version: Version
    kind: FileKind
    path: Inside


class ImageRecord(_Model):
    """An image."""

    repository: Repository
    tag: Version
    manifest_digest: Digest
    layout: Inside


class ManifestRecord(_Model):
    """Kubernetes objects."""

    name: Name
    version: Version
    path: Inside


class EntryRecord(_Model):
    """entry.json. contents: path -> sha256, size, time of change."""

    schema_version: Literal[1]
    contents: dict[Inside, tuple[Sha256, int, int]]
    files: tuple[FileRecord, ...]
    images: tuple[ImageRecord, ...]
    manifests: tuple[ManifestRecord, ...] = ()

    @model_validator(mode="after")
    def whole(self) -> EntryRecord:
        """Checks that all offered files have sums."""
        for path in (*(item.path for item in self.files), *(item.path for item in self.manifests)):
            if path not in self.contents:
                raise ValueError(f"{path} has no sum")
        for image in self.images:
            if not any(path.startswith(f"{image.layout}/") for path in self.contents):
                raise ValueError(f"{image.layout} has no sums")
        return self


class PickRecord(_Model):
    """A component of a bundle. key: the folder in the bundle that holds it."""

    component: Name
    version: Version
    key: Name


class Index(_Model):
    """bundle.json."""

    schema_version: Literal[1]
    kubernetes_version: Annotated[str, Field(pattern=r"^[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}$")]
    picks: tuple[PickRecord, ...]
