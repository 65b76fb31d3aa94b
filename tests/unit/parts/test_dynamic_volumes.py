"""The default StorageClass, and the scripts that make and remove a volume's folder."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pai_install.components.model import ComponentSet
from pai_install.parts.registry import ADDONS, make_context, needed_components, part_named
from pai_install.site import Site, SiteInvalid
from tests.addons import ROOT, addon_action
from tests.errors import raises
from tests.unit.plan.conftest import CONFIG

MakeSite = Callable[..., Site]
FOLDER = ROOT / "addons" / "dynamic_volumes"
SERVICES = "dynamic-volumes: {type: local-path}\n"


def objects(site: Site, components: ComponentSet) -> dict[str, Any]:
    """kind/name -> the object."""
    context = make_context(site, components, Path("/s"))
    given = part_named("addon.dynamic_volumes").variables(context, context.leader)
    assert given is not None
    (wanted,) = given.variables()["cluster_addons_wanted"]
    found = addon_action().objects_of(FOLDER, wanted["values"])
    return {f"{it['kind']}/{it['metadata']['name']}": it for it in found}


def default_classes(found: dict[str, Any]) -> list[str]:
    """The classes that a claim gets which names none."""
    default = "storageclass.kubernetes.io/is-default-class"
    classes = (it["metadata"] for name, it in found.items() if name.startswith("StorageClass/"))
    return [it["name"] for it in classes if it["annotations"][default] == "true"]


@pytest.mark.parametrize("services", ["", "dynamic-volumes:\n"])
def test_a_site_that_does_not_ask_has_none(make_site: MakeSite, services: str) -> None:
    site = make_site(config=CONFIG, services=services)
    assert "addon.dynamic_volumes" not in {part.name for part in ADDONS if part.wanted(site)}
    assert "local-path-provisioner" not in needed_components(site)


@pytest.mark.parametrize(("more", "name"), [("", "local-path"), (", reclaim-policy: Retain", "local-path-retain")])
def test_one_class_is_the_default(make_site: MakeSite, components: ComponentSet, more: str, name: str) -> None:
    """Kubernetes changes no policy of a class that is there: both classes are, and the site chooses."""
    site = make_site(config=CONFIG, services=f"dynamic-volumes: {{type: local-path{more}}}\n")
    found = objects(site, components)
    assert default_classes(found) == [name]
    policies = {it["metadata"]["name"]: it["reclaimPolicy"] for it in found.values() if it["kind"] == "StorageClass"}
    assert policies == {"local-path": "Delete", "local-path-retain": "Retain"}


def test_its_programs_are_needed_and_held_by_every_machine(make_site: MakeSite) -> None:
    site = make_site(config=CONFIG, services=SERVICES)
    part = part_named("addon.dynamic_volumes")
    assert part.components(site) == {"local-path-provisioner", "busybox"}
    assert all(part.images(site, machine) for machine in site.machines)


def test_folders_are_made_by_our_own_image_without_an_account(make_site: MakeSite, components: ComponentSet) -> None:
    found = objects(make_site(config=CONFIG, services="dynamic-volumes: {type: local-path, path: /mnt/v}"), components)
    data = found["ConfigMap/local-path-provisioner"]["data"]
    (paths,) = json.loads(data["config.json"])["nodePathMap"]
    assert paths["paths"] == ["/mnt/v"]
    spec = json.loads(data["helperPod.yaml"])["spec"]
    (container,) = spec["containers"]
    # the provisioner reads the logs of a container of this name
    assert container["name"] == "helper-pod"
    assert container["image"].startswith("registry.pai.internal/busybox:")
    assert "@sha256:" in container["image"]
    assert spec["automountServiceAccountToken"] is False
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["DAC_OVERRIDE", "FOWNER"]}


def test_the_provisioner_is_not_root_and_writes_no_object_of_others(
    make_site: MakeSite, components: ComponentSet
) -> None:
    found = objects(make_site(config=CONFIG, services=SERVICES), components)
    pod = found["Deployment/local-path-provisioner"]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["containers"][0]["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    rules = found["ClusterRole/pai-dynamic-volumes"]["rules"]
    written = {name for rule in rules if "create" in rule["verbs"] for name in rule["resources"]}
    assert written == {"persistentvolumes", "events"}
    assert not {"secrets", "pods", "*"} & {name for rule in rules for name in rule["resources"]}


def test_a_folder_of_docker_is_refused(make_site: MakeSite) -> None:
    services = "dynamic-volumes: {type: local-path, path: /mnt/docker/volumes}\n"
    with raises("site-invalid", kind=SiteInvalid) as refused:
        make_site(config=CONFIG, services=services)
    (error,) = (problem for problem in refused.value.problems if problem.is_error)
    assert "docker_data_root, /mnt/docker, lie in each other" in error.message


def script(name: str, volume: Path) -> None:
    """Runs a script as the provisioner's pod does."""
    words = ["/bin/sh", str(FOLDER / "files" / name), "-p", str(volume), "-a", "create"]
    subprocess.run(words, env={**os.environ, "VOL_DIR": str(volume)}, check=True, timeout=10)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_a_new_folder_of_volumes_is_closed_to_the_machines_users(tmp_path: Path) -> None:
    volume = tmp_path / "volumes" / "pvc-1"
    volume.parent.mkdir(mode=0o755)
    script("setup.sh", volume)
    assert mode(volume.parent) == 0o700
    assert mode(volume) == 0o777
    (volume / "kept").write_text("data")
    script("setup.sh", volume)
    assert (volume / "kept").read_text() == "data"


def test_a_folder_that_somebody_uses_keeps_its_mode(tmp_path: Path) -> None:
    volume = tmp_path / "volumes" / "pvc-1"
    (volume.parent / "theirs").mkdir(parents=True)
    volume.parent.chmod(0o755)
    script("setup.sh", volume)
    assert mode(volume.parent) == 0o755


def test_a_volume_goes_with_all_that_is_in_it_and_nothing_else(tmp_path: Path) -> None:
    outside, volume = tmp_path / "outside", tmp_path / "volumes" / "pvc-1"
    (outside / "of-others").mkdir(parents=True)
    (volume / "deep" / "er").mkdir(parents=True)
    (volume / "link").symlink_to(outside)
    script("teardown.sh", volume)
    assert not volume.exists()
    assert volume.parent.is_dir()
    assert (outside / "of-others").is_dir()
