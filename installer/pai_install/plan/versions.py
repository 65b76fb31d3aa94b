"""Which version of each component a machine has, and which it keeps: a newer catalogue upgrades nothing. Pure.

docs/decisions/013-apply-keeps-installed-versions.md says why.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from pai_install.components.catalogue import Catalogue, Component, exact_kubernetes, family_of, load_catalogue
from pai_install.errors import ExitCode, PaiError
from pai_install.plan.observed import Observed
from pai_install.site import Site

KUBERNETES = "kubernetes"
Versions = Mapping[str, str]  # component -> version

# What restarts, or changes below, what runs on a machine.
UNDER_PODS = (KUBERNETES, "containerd", "runc", "nvidia-container-toolkit")


def installed(seen: Observed, catalogue: Catalogue | None = None) -> dict[str, str]:
    """Returns component -> version, from programs, images, and static pods on the machine. Unknown ones are omitted."""
    known = catalogue or load_catalogue()
    found = {name: version for name, component in known.components.items() if (version := _seen(name, component, seen))}
    running = seen.kubernetes.settings
    if "etcd" in running:
        # The tag of etcd's image ends with a build number, as in 3.6.4-0.
        found["etcd"] = running["etcd"].rpartition("-")[0] or running["etcd"]
    if "version" in running:  # an upgrade that was interrupted changed the static pods before the kubelet
        found[KUBERNETES] = newest((running["version"], found.get(KUBERNETES, "")))
    return found


def _seen(name: str, component: Component, seen: Observed) -> str:
    if name == KUBERNETES:
        return seen.programs.get("kubelet", "")
    if name != "etcd":  # its program is there before the pod that it speaks to
        for file in component.files:
            if file in seen.programs:
                return seen.programs[file]
    return next((version for version in _of_images(component, seen.images) if version), "")


def _of_images(component: Component, images: Mapping[str, str]) -> Iterator[str]:
    for repository, spec in component.images.items():
        if repository in images:
            match = _pattern(spec.tag).fullmatch(images[repository])
            # a tag may say nothing of the version ("v1-93c5489")
            yield match.groupdict().get("version", "") if match else ""


@cache
def _pattern(tag: str) -> re.Pattern[str]:
    """Returns a pattern that extracts the version from a tag of the catalogue's form ("v{version}")."""
    return re.compile(re.escape(tag).replace(re.escape("{version}"), r"(?P<version>[0-9][0-9a-z.]*)"))


def promised(variables: Mapping[str, Any], catalogue: Catalogue | None = None) -> dict[str, str]:
    """Component -> the version that roles with these variables bring to a machine."""
    lists = [value for name, value in variables.items() if name.endswith("_artifacts") and isinstance(value, list)]
    programs = {one["name"]: one["version"] for found in lists for one in found}
    names = [one["name"].rpartition("/")[2].partition(":") for one in variables.get("system_images_images", ())]
    images = {repository: tag for repository, _, tag in names}
    # Variables and machines name versions in the same form, so one function reads both.
    return installed(Observed(hostname="-", programs=programs, images=images), catalogue)


def kept(site: Site, observed: Mapping[str, Observed]) -> dict[str, dict[str, str]]:
    """Returns machine -> versions to keep: its own, then the cluster's, or {} without a cluster.

    A machine with a pending upgrade stays older than the control plane. A new one gets the control plane's versions.
    """
    base = of_cluster(site, observed)
    if not base:
        return {}
    installed_versions = {host: installed(seen) for host, seen in observed.items()}
    # The first control plane may lack components that workers have, such as the NVIDIA toolkit.
    for name in dict.fromkeys(name for versions in installed_versions.values() for name in versions):
        base.setdefault(name, newest(versions.get(name, "") for versions in installed_versions.values()))
    return {
        machine.hostname: {**base, **installed_versions.get(machine.hostname, {})} for machine in site.present_machines
    }


def of_cluster(site: Site, observed: Mapping[str, Observed]) -> dict[str, str]:
    """Returns the versions of the first control-plane node in a cluster, or {}."""
    for machine in site.control_planes:
        seen = observed.get(machine.hostname)
        if seen is not None and seen.kubernetes.joined and seen.kubernetes.settings.get("version"):
            return installed(seen)
    return {}


def desired_version(site: Site) -> str:
    """Returns the desired Kubernetes version in config.yaml, exact or minor, or ""."""
    settings = site.settings
    return settings.kubernetes_version if "kubernetes_version" in settings.model_fields_set else ""


def require_available(site: Site, version: str) -> None:
    """Raises PaiError (usage) where the site's component source has no such Kubernetes version."""
    source = site.settings.component_source
    if source == "bundle":  # only the file itself tells
        return
    try:
        exact_kubernetes(load_catalogue(), version, family_of(source))
    except PaiError as error:
        raise PaiError(error.message, code=error.code, remedy=error.remedy, exit_code=ExitCode.USAGE) from error


def fits(version: str, wanted: str) -> bool:
    """Returns whether an exact version matches "1.36.3" or "1.36". Every version matches an empty text."""
    return not wanted or version == wanted or version.startswith(f"{wanted}.")


def numbers(version: str) -> tuple[int, ...]:
    """Returns the version as comparable numbers, without the suffix after a hyphen."""
    return tuple(int(part) for part in version.partition("-")[0].split(".") if part.isdigit())


def minor(version: str) -> tuple[int, ...]:
    """The first two numbers."""
    return numbers(version)[:2]


def newest(versions: Iterable[str]) -> str:
    """Returns the newest version, or ""."""
    return max(versions, key=numbers, default="")


def differences(had: Versions, wanted: Versions) -> dict[str, tuple[str, str]]:
    """Returns component -> (old, new) version, for existing components with a change."""
    return {name: (had[name], new) for name, new in wanted.items() if name in had and had[name] != new}
