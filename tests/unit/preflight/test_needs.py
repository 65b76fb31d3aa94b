"""What is asked of each machine, and that it does not grow with the square of their number."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_install.parts import registry
from pai_install.preflight import needs
from pai_install.site import Site
from tests.unit.preflight.machines import CONFIG, GIB, LAYOUT, read_site

MACHINE = '  - {{hostname: {name}, hostip: 10.0.{net}.{host}, machine-type: cpu, pai-{role}: "true"}}\n'


def large(folder: Path, masters: int, workers: int) -> Site:
    """A site with so many control planes and workers."""
    head = LAYOUT[: LAYOUT.index("  - {hostname: master")]
    lines = [MACHINE.format(name=f"m{number}", net=1, host=number + 1, role="master") for number in range(masters)]
    lines += [
        MACHINE.format(name=f"w{number}", net=2 + number // 200, host=number % 200 + 1, role="worker")
        for number in range(workers)
    ]
    return read_site(folder, head + "".join(lines))


def test_connections_grow_with_the_machines_only(tmp_path: Path) -> None:
    site = large(tmp_path / "large", masters=3, workers=300)
    asked = needs.peers(site)
    assert max(len(found) for found in asked.values()) <= 3 + needs.NEIGHBOURS
    reached = {other for name, found in asked.items() if name.startswith("w") for other in found}
    assert reached >= {"m0", "m1", "m2"}
    everybody = {other for found in asked.values() for other in found}
    assert everybody == {machine.hostname for machine in site.machines}


def test_no_machine_asks_itself(tmp_path: Path) -> None:
    for masters, workers in ((1, 1), (1, 2), (3, 1), (3, 4)):
        site = large(tmp_path / f"{masters}-{workers}", masters, workers)
        for name, others in needs.peers(site).items():
            assert name not in others


def test_ports_between_machines(tmp_path: Path) -> None:
    site = large(tmp_path / "ha", masters=3, workers=1)
    master, other, worker = (site.machine(name) for name in ("m0", "m1", "w0"))
    assert needs.peer_ports(site, worker, master) == (22, 5080, 6443)
    assert needs.peer_ports(site, worker, other) == (22, 6443)
    assert needs.peer_ports(site, other, master) == (22, 5080, 10250, 6443, 2379, 2380)
    assert needs.peer_ports(site, master, worker) == (22, 10250)
    assert needs.peer_ports(site, worker, worker) == (22,)


def test_ports_of_a_machine(site: Site) -> None:
    held = {name: {str(need) for need in registry.ports(site, site.machine(name))} for name in ("master", "worker1")}
    assert {"6443/tcp", "2379/tcp", "2380/tcp", "5080/tcp", "123/udp"} <= held["master"] - held["worker1"]
    assert held["worker1"] == {"10250/tcp", "10248/tcp", "10249/tcp", "10256/tcp", "7443/tcp", "8472/udp"}


def test_host_gateways_need_no_tunnel(tmp_path: Path) -> None:
    site = read_site(tmp_path / "s", config=CONFIG + "flannel_backend: host-gw\n")
    assert "8472/udp" not in {str(need) for need in registry.ports(site, site.machine("worker1"))}
    assert "vxlan" not in registry.kernel_modules(site)


def test_space(tmp_path: Path) -> None:
    site = read_site(tmp_path / "s", config=CONFIG.replace("/var/lib/docker", "/data/docker"))
    master, worker = (needs.space(site, site.machine(name)) for name in ("master", "worker1"))
    assert set(master) - set(worker) == {"/var/lib/etcd", "/var/lib/pai-install"}
    assert worker["/data/docker"] == (2 * GIB, 20 * GIB)
    assert all(least <= enough for least, enough in master.values())


@pytest.mark.parametrize(
    ("config", "servers"),
    [
        ("", ()),
        ("http_proxy: http://proxy:3128\nhttps_proxy: http://proxy:3128\n", ("proxy:3128",)),
        ("http_proxy: http://me:word@proxy/\n", ("proxy:80",)),
        ("https_proxy: https://proxy.example.com\n", ("proxy.example.com:443",)),
    ],
)
def test_proxy_servers(tmp_path: Path, config: str, servers: tuple[str, ...]) -> None:
    assert needs.proxy_servers(read_site(tmp_path / "s", config=CONFIG + config)) == servers


def test_questions(site: Site) -> None:
    asked = needs.questions(site)["worker1"]
    assert asked["preflight_become"] is True
    assert asked["preflight_etcd"] == ""
    assert asked["preflight_peers"] == [
        {"name": "master", "address": "10.0.0.1", "tcp": [22, 5080, 6443]},
        {"name": "worker2", "address": "10.0.0.3", "tcp": [22]},
    ]
    assert needs.questions(site)["master"]["preflight_etcd"] == "/var/lib/etcd"
