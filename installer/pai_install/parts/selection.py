"""The components that the parts of a site need, from the source that the site names."""

from __future__ import annotations

from collections.abc import Mapping

from pai_install.components.access import Mirror
from pai_install.components.catalogue import load_catalogue
from pai_install.components.choose import choose
from pai_install.components.model import Selection
from pai_install.components.source import Source
from pai_install.parts.registry import needed_components
from pai_install.site import Site


def choose_components(site: Site, installed: Mapping[str, str] | None = None) -> tuple[Selection, Source]:
    """installed: component -> version that stays, whatever the catalogue prefers.

    Raises PaiError (site invalid) when the site's version, source and bundle do not go together."""
    settings = site.settings
    return choose(
        load_catalogue(),
        settings.component_source,
        settings.kubernetes_version,
        mirror=mirror_of(site),
        bundle=settings.component_bundle,
        needed=needed_components(site),
        images=settings.component_images,
        installed=installed,
    )


def mirror_of(site: Site) -> Mirror:
    """Returns the mirror of a site with its credentials and authorities, with an empty url if there is none."""
    settings = site.settings
    password = settings.component_mirror_password
    return Mirror(
        settings.component_mirror_url or "",
        settings.component_mirror_username or "",
        password.get_secret_value() if password else "",
        settings.component_mirror_ca_file or "",
    )
