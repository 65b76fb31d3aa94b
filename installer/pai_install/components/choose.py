"""Chooses components and source from the site's settings."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from pai_install.components.access import UPSTREAM, Mirror
from pai_install.components.bundle import Bundle
from pai_install.components.catalogue import Catalogue, no_longer, resolve
from pai_install.components.fetch import open_source
from pai_install.components.model import PinnedComponent, Selection, SourceName
from pai_install.components.site_images import SiteImages
from pai_install.components.source import Source, box_architecture
from pai_install.errors import ExitCode, PaiError


def choose(
    catalogue: Catalogue,
    source: SourceName,
    kubernetes_version: str = "",
    *,
    mirror: Mirror = UPSTREAM,
    bundle: Path | None = None,
    needed: Collection[str] | None = None,
    images: Mapping[str, Path] | None = None,
    installed: Mapping[str, str] | None = None,
) -> tuple[Selection, Source]:
    """Returns the selection and the source of a site. Raises PaiError (site invalid) if they do not match.

    needed: names in the catalogue that the site needs, None for all. images: component -> file of its image. installed:
    component -> version to keep.
    """
    given = images or {}
    if source == "bundle":
        selection, opened = _of_bundle(catalogue, kubernetes_version, bundle, needed, given, installed or {})
    else:
        selection = resolve(
            catalogue,
            kubernetes_version,
            source,
            needed,
            given,
            installed=installed,
            architecture=box_architecture(),
        )
        opened = open_source(catalogue, source, mirror)
    return selection, SiteImages(catalogue, given, opened) if given else opened


def _of_bundle(
    catalogue: Catalogue,
    kubernetes_version: str,
    bundle: Path | None,
    needed: Collection[str] | None,
    given: Collection[str],
    installed: Mapping[str, str],
) -> tuple[Selection, Source]:
    if bundle is None:
        raise PaiError(
            "cannot choose components: component_source is bundle, and component_bundle is missing",
            code="bundle-path-missing",
            remedy="set component_bundle in config.yaml",
            exit_code=ExitCode.SITE_INVALID,
        )
    opened = Bundle(bundle)
    wanted = catalogue.components.keys() if needed is None else needed
    held = opened.selection(installed.get("kubernetes") or kubernetes_version)
    own = tuple(
        PinnedComponent(name, catalogue.components[name].default["upstream"]) for name in wanted if name in given
    )
    picks = tuple(pick for pick in held.picks if pick.component in wanted and pick.component not in given)
    selection = replace(held, picks=(*picks, *own))
    # what only some sources have may be missing in a bundle of everything
    due = [name for name in wanted if needed is not None or catalogue.components[name].build is not None]
    lacking = sorted(set(due) - {pick.component for pick in selection.picks})
    if lacking:
        raise PaiError(
            f"cannot use {bundle}: it lacks {', '.join(lacking)}",
            code="bundle-incomplete",
            remedy="create a bundle for this site with this version: pai-install components bundle FILE",
            exit_code=ExitCode.SITE_INVALID,
        )
    other = [PinnedComponent(it.component, stays) for it in selection.picks if (stays := installed.get(it.component))]
    if gone := [one for one in other if one.component not in given and one.component != "kubernetes"
                and one not in selection.picks]:  # fmt: skip
        raise no_longer(gone, str(bundle))
    return selection, opened
