"""What a site means, in words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.site import load_site
from pai_install.site.summary import headline, machine_table, meanings, site_json
from tests.unit.site.sites import CONFIG, LAYOUT, write_site


def said(directory: Path, config: str = "", layout: str = LAYOUT) -> dict[str, tuple[str, bool]]:
    """Topic -> what is said and whether it is a default."""
    site = load_site(write_site(directory, layout=layout, config=CONFIG + config)).site
    return {meaning.topic: (meaning.value, meaning.default) for meaning in meanings(site)}


@pytest.mark.parametrize(
    ("config", "topic", "value"),
    [
        ("", "log in as", "admin, with key key"),
        ("kubernetes_version: 1.35\n", "Kubernetes", "1.35"),
        ("component_source: modules\n", "components", "modules: built by the Go client"),
        (
            "component_source: mirror\ncomponent_mirror_url: https://m/x\n",
            "components",
            "mirror at https://m/x",
        ),
        ("flannel_backend: host-gw\n", "pods", "10.200.0.0/13, /25 per machine, flannel host-gw"),
        ("docker_data_root: /d\n", "Docker", "distribution packages, data in /d"),
        ("container_default_runtime: nvidia\n", "default runtime", "nvidia"),
        ("ntp_servers: [a, b]\n", "time", "a, b"),
        (
            "enable_docker_cache: true\ndocker_cache_storage_backend: filesystem\n",
            "Docker cache",
            "docker.io kept in filesystem /var/lib/registry",
        ),
        ("openpai_docker_registry_mirrors: [https://a]\n", "registry mirrors", "https://a"),
        ("docker_image_tag: v1.8.0\n", "OpenPAI site", "v1.8.0"),
        ("kubelet_config: {maxPods: 9}\nkubelet_custom_flags: {v: 4}\n", "kubelet", "maxPods, --v"),
    ],
)
def test_what_is_written_is_said(tmp_path: Path, config: str, topic: str, value: str) -> None:
    assert said(tmp_path, config)[topic] == (value, False)


def test_what_is_not_written_is_called_a_default(tmp_path: Path) -> None:
    defaults = {topic for topic, (_, default) in said(tmp_path).items() if default}
    assert {"Kubernetes", "components", "pods", "services", "Docker", "Docker cache", "time"} <= defaults


def test_hived_is_spoken_of_on_openpai_sites_only(tmp_path: Path) -> None:
    assert "HiveD scheduler" not in said(tmp_path / "new")
    assert said(tmp_path / "old", "docker_image_tag: v1.8.0\n")["HiveD scheduler"] == (
        "no: services-configuration.yaml names nothing that it divides",
        True,
    )


def test_the_headline_counts_devices_of_present_workers(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    absent = LAYOUT[LAYOUT.index("  - hostname: w1") :].replace("w1", "w2").replace("0.2", "0.3") + "    absent: true\n"
    site = load_site(write_site(tmp_path, layout=LAYOUT + absent)).site
    assert headline(site) == snapshot
    assert [row[2] for row in machine_table(site)] == ["roles", "control-plane", "worker", "worker (absent)"]


def test_the_json_form_holds_no_secret(tmp_path: Path) -> None:
    config = "password: pl4nted\nhttp_proxy: http://user:pl4nted@proxy:3128\n"
    site = load_site(write_site(tmp_path, config=CONFIG + config)).site
    text = json.dumps(site_json(site))
    assert "pl4nted" not in text
    assert site_json(site)["settings"]["http_proxy"]["value"] == "http://********@proxy:3128"
    assert site_json(site)["machines"][0]["ssh"]["password"] is True


def test_registries_of_the_section_are_said(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    services = """\
registry:
  air-gapped: true
  upstreams:
    - {name: quay.io}
    - {name: ghcr.io, mirror: "https://harbor.example.com"}
  logins: [{registry: nvcr.io, username: a, password: {env: PAI_NOT_SET}}]
"""
    config = CONFIG + "enable_docker_cache: true\ndocker_cache_storage_backend: filesystem\n"
    site = load_site(write_site(tmp_path, config=config, services=services)).site
    found = {meaning.topic: meaning.value for meaning in meanings(site)}
    assert found["Docker cache"] == snapshot
    assert found["own mirrors"] == "ghcr.io at https://harbor.example.com"
    assert found["logged in at"] == "nvcr.io"
    assert "air-gapped" in found
