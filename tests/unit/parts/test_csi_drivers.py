"""CSI drivers: installed where a storage needs one, on workers, with what a mount needs and no more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pai_install.components.model import ComponentSet
from pai_install.parts.registry import ADDONS, images, make_context, needed_components, part_named, ports
from pai_install.site import Site, SiteInvalid
from pai_install.site.services.storages import DRIVERS
from tests.addons import ROOT, addon_action
from tests.errors import raises
from tests.unit.plan.conftest import CONFIG, LAYOUT

MakeSite = Callable[..., Site]
SMB = "{name: homes, type: smb, server: nas, share-name: homes, username: mounter, password: p}"
FILE = "{name: files, type: azureFile, account-name: acc, account-key: QQ==, share-name: s}"
BLOB = "{name: blobs, type: azureBlob, account-name: acc, account-key: QQ==, container-name: c}"
NFS = "{name: data, type: nfs, server: nas, path: /data}"
CASES = [("csi_smb", SMB), ("csi_azure_file", FILE), ("csi_azure_blob", BLOB)]


def services(*storages: str) -> str:
    return "storages:\n" + "".join(f"  - {storage}\n" for storage in storages)


def wanted(site: Site) -> set[str]:
    """Those of the drivers' add-ons that the site is to have."""
    return {part.addon for part in ADDONS if part.addon.startswith("csi_") and part.wanted(site)}


def objects(site: Site, components: ComponentSet, name: str) -> dict[str, Any]:
    """Kind -> the object."""
    context = make_context(site, components, Path("/s"))
    given = part_named(f"addon.{name}").variables(context, context.leader)
    assert given is not None
    (addon,) = given.variables()["cluster_addons_wanted"]
    return {it["kind"]: it for it in addon_action().objects_of(ROOT / "addons" / name, addon["values"])}


@pytest.mark.parametrize(("name", "storage"), CASES)
def test_a_driver_comes_with_a_storage_of_its_type(make_site: MakeSite, name: str, storage: str) -> None:
    assert wanted(make_site(config=CONFIG, services=services(NFS, storage))) == {name}


def test_kubernetes_own_types_need_none(make_site: MakeSite) -> None:
    site = make_site(config=CONFIG, services=services(NFS))
    assert wanted(site) == set()
    assert "csi-node-driver-registrar" not in needed_components(site)


def test_a_site_with_drivers_of_its_own_is_left_alone(make_site: MakeSite) -> None:
    own = CONFIG + "csi_drivers: false\ncomponent_source: modules\n"
    assert wanted(make_site(config=own, services=services(SMB, FILE, BLOB))) == set()


def test_modules_cannot_have_them_and_the_storage_is_named(make_site: MakeSite) -> None:
    with raises("site-invalid", kind=SiteInvalid) as refused:
        make_site(config=CONFIG + "component_source: modules\n", services=services(NFS, SMB))
    (error,) = (problem for problem in refused.value.problems if problem.is_error)
    assert (Path(error.file).name, error.line, error.path) == ("services-configuration.yaml", 3, "storages[1].type")
    assert "smb.csi.k8s.io" in error.message
    assert "csi_drivers: false" in error.remedy


def test_only_workers_hold_their_images_and_ports(make_site: MakeSite) -> None:
    site = make_site(config=CONFIG, services=services(SMB))
    (master,) = site.control_planes
    for machine in site.machines:
        assert ("smbplugin" in images(site, machine)) is machine.worker
        assert (29643 in {port.port for port in ports(site, machine)}) is machine.worker
    assert not master.worker


@pytest.mark.parametrize(("name", "storage"), CASES)
def test_where_and_as_what_a_driver_runs(
    make_site: MakeSite, components: ComponentSet, name: str, storage: str
) -> None:
    found = objects(make_site(config=CONFIG, services=services(storage)), components, name)
    driver, pod = found["CSIDriver"], found["DaemonSet"]["spec"]["template"]["spec"]
    assert driver["metadata"]["name"] in DRIVERS.values()
    assert driver["spec"]["volumeLifecycleModes"] == ["Persistent"]
    assert driver["spec"]["attachRequired"] is False
    assert pod["automountServiceAccountToken"] is False
    containers = {it["name"]: it for it in pod["containers"]}
    assert [name for name, it in containers.items() if it["securityContext"].get("privileged")] == ["driver"]
    assert all("@sha256:" in it["image"] for it in containers.values())
    (registration,) = (it for it in containers["registrar"]["args"] if it.startswith("--kubelet-registration-path="))
    (socket,) = (it["hostPath"]["path"] for it in pod["volumes"] if it["name"] == "socket")
    assert registration == f"--kubelet-registration-path={socket}/csi.sock"
    assert socket == f"/var/lib/kubelet/plugins/{driver['metadata']['name']}"


def test_control_planes_that_run_no_jobs_are_left_out_by_name(make_site: MakeSite, components: ComponentSet) -> None:
    pod = objects(make_site(config=CONFIG, services=services(SMB)), components, "csi_smb")["DaemonSet"]["spec"][
        "template"
    ]
    (term,) = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert term["matchExpressions"] == [{"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["master"]}]
    both = LAYOUT.replace('pai-master: "true"', 'pai-master: "true", pai-worker: "true"')
    pod = objects(make_site(both, CONFIG, services(SMB)), components, "csi_smb")["DaemonSet"]["spec"]["template"]
    assert "affinity" not in pod["spec"]


def test_nothing_restarts_a_driver_that_serves_the_files_itself(make_site: MakeSite, components: ComponentSet) -> None:
    found = objects(make_site(config=CONFIG, services=services(BLOB)), components, "csi_azure_blob")
    assert found["DaemonSet"]["spec"]["updateStrategy"] == {"type": "OnDelete"}
    assert all("livenessProbe" not in it for it in found["DaemonSet"]["spec"]["template"]["spec"]["containers"])
