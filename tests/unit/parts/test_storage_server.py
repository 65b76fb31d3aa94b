"""A machine that serves storage: what it gets, what it does not get, and what one more worker changes on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from pai_install.components.model import ComponentSet
from pai_install.health.judge.expectation import expectations
from pai_install.operations.verify import proof
from pai_install.parts.registry import make_context, parts_of, ports, space
from pai_install.plan.inventory import build_inventory
from pai_install.plan.model import Inventory, Plan
from pai_install.plan.observation import Observation
from pai_install.plan.observed import Observed
from pai_install.plan.planner import make_plan
from pai_install.site import Site
from pai_install.site.services.storage import FOLDERS
from tests.unit.plan.conftest import LAYOUT, ROLES, converged

FILES = '  - {hostname: files, hostip: 10.0.0.9, machine-type: cpu, pai-storage: "true"}\n'
ONE_MORE = '  - {hostname: worker3, hostip: 10.0.0.10, machine-type: cpu, pai-worker: "true"}\n'
ROLE_FOLDERS = Path(__file__).parents[3] / "roles/storage_server/vars/main.yml"

Make = Callable[[str], tuple[Site, Inventory]]


@pytest.fixture
def make(make_site: Callable[..., Site], components: ComponentSet) -> Make:
    """A site of that layout, and its inventory."""

    def made(layout: str) -> tuple[Site, Inventory]:
        site = make_site(layout)
        context = make_context(site, components, site.directory / ".pai")
        return site, build_inventory(context, dict.fromkeys(ROLES, "1"))

    return made


def value(inventory: Inventory, host: str, name: str) -> object:
    return inventory.host_vars[host].get(name, inventory.shared_vars.get(name))


def work_of(plan: Plan) -> dict[str, list[str]]:
    """Machine -> the phases that it has work in."""
    hosts = dict.fromkeys(step.host for phase in plan.steps for step in phase.hosts)
    return {host: [phase.name for phase in plan.steps if host in phase.names] for host in hosts}


def test_a_machine_beside_the_cluster_gets_system_clock_and_server(make: Make) -> None:
    site, inventory = make(LAYOUT + FILES)
    names = [part.name for part in parts_of(site, site.machine("files"))]
    assert names == ["base", "time_sync", "storage_server", "node_exporter"]
    bare = {machine.hostname: Observed(hostname=machine.hostname) for machine in site.present_machines}
    work = work_of(make_plan(site, inventory, bare))
    assert work["files"] == ["base", "time", "storage"]
    assert "storage" in work["worker1"]
    assert "storage" not in work["master"]
    assert {str(port) for port in ports(site, site.machine("files"))} == {"2049/tcp"}
    assert set(space(site, site.machine("files"))) == {"/", "/share"}


def test_of_the_system_it_gets_what_is_no_matter_of_nodes(make: Make) -> None:
    _site, inventory = make(LAYOUT + FILES)
    assert value(inventory, "files", "base_kernel_modules") == []
    assert value(inventory, "files", "base_sysctl") == {}
    assert value(inventory, "files", "base_swap_off") is False
    assert value(inventory, "worker1", "base_swap_off") is True
    assert value(inventory, "files", "base_hosts") == {"10.0.0.9": ["files"]}


def test_every_node_drops_what_its_pods_send_to_the_server(make: Make) -> None:
    _site, inventory = make(LAYOUT + FILES)
    for host in ("master", "worker1"):
        assert value(inventory, host, "pod_forwarding_storage_servers") == ["10.0.0.9"]
        assert value(inventory, host, "pod_forwarding_storage_port") == 2049
    _site, without = make(LAYOUT)
    assert value(without, "worker1", "pod_forwarding_storage_servers") == []


def test_nodes_know_the_server_by_its_name(make: Make) -> None:
    _site, inventory = make(LAYOUT + FILES)
    for host in ("master", "worker1"):
        hosts = value(inventory, host, "base_hosts")
        assert isinstance(hosts, dict)
        assert hosts["10.0.0.9"] == ["files"]


def test_nodes_alone_may_mount_and_find_a_client(make: Make) -> None:
    _site, inventory = make(LAYOUT + FILES)
    assert value(inventory, "files", "storage_server_clients") == ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
    assert inventory.groups["storage_servers"] == ("files",)
    assert value(inventory, "worker1", "storage_client_packages") == ["nfs-common"]


def test_the_site_chooses_the_folder(make_site: Callable[..., Site], components: ComponentSet) -> None:
    site = make_site(LAYOUT + FILES, services="storage-manager: {localpath: /srv/all}\n")
    inventory = build_inventory(make_context(site, components, site.directory), {})
    assert value(inventory, "files", "storage_server_path") == "/srv/all"
    assert site.services.file_server.exports == ("/srv/all/data", "/srv/all/users")


def test_the_site_says_what_folders_may_take(make_site: Callable[..., Site], components: ComponentSet) -> None:
    site = make_site(LAYOUT + FILES, services="storage-manager: {quotas: {data: 10Ti}}\n")
    inventory = build_inventory(make_context(site, components, site.directory), {})
    assert value(inventory, "files", "storage_server_data_quota") == 10 << 40
    assert value(inventory, "files", "storage_server_user_quota") == 0


def test_the_role_makes_the_folders_that_storages_may_name() -> None:
    made = yaml.safe_load(ROLE_FOLDERS.read_text())["__storage_server_folders"]
    assert [folder["path"].rpartition("/")[2] for folder in made] == list(FOLDERS)


@pytest.mark.parametrize("limit", [(), ("worker3",)])
def test_one_more_worker_changes_the_clients_and_nothing_else(make: Make, limit: tuple[str, ...]) -> None:
    _before, known = make(LAYOUT + FILES)
    site, inventory = make(LAYOUT + FILES + ONE_MORE)
    seen = {**converged(known), "worker3": Observed(hostname="worker3")}
    plan = make_plan(site, inventory, seen, limit=limit)
    others = {host: phases for host, phases in work_of(plan).items() if host != "worker3"}
    assert others == {"files": ["storage"]}
    step = next(step for phase in plan.steps for step in phase.hosts if step.host == "files")
    assert step.reasons[-1] == "settings changed: storage_server_clients"
    assert step.effects == ()


def test_a_converged_site_has_no_work(make: Make) -> None:
    site, inventory = make(LAYOUT + FILES)
    assert make_plan(site, inventory, converged(inventory)).empty


def test_it_is_proven_by_its_health_and_not_as_a_node(make: Make) -> None:
    site, inventory = make(LAYOUT + FILES)
    verify, health = proof(site, Observation(inventory, converged(inventory)), "asked for")
    assert "files" not in verify.names
    assert "files" in health.names
    (alone,) = proof(site, Observation(inventory, converged(inventory)), "asked for", ["files"])
    assert alone.name == "health"
    assert not expectations(site)["files"].node
    nodes = value(inventory, "worker1", "cluster_verify_nodes")
    assert isinstance(nodes, dict)
    assert set(nodes) == {"master", "worker1", "worker2"}


def test_a_worker_may_serve_too(make: Make) -> None:
    site, inventory = make(LAYOUT.replace('cpu, pai-worker: "true"', 'cpu, pai-worker: "true", pai-storage: "true"'))
    names = [part.name for part in parts_of(site, site.machine("worker2"))]
    assert {"storage_server", "storage_client", "kubernetes_node", "worker"} <= set(names)
    assert value(inventory, "worker2", "storage_server_clients") == ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
