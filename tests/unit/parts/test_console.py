"""What the console's pods are given: settings that its program reads, a certificate, ports, and rights."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from pai_install.components.model import ComponentSet
from pai_install.console.settings import ConsoleSettings
from pai_install.monitoring.scrape import Scraping, configuration, outside
from pai_install.parts.addon import AddonVariables
from pai_install.parts.console import console_ports
from pai_install.parts.registry import images, make_context, part_named, ports
from pai_install.registry.certificates import make_authority, make_serving
from pai_install.registry.compile import served_names
from pai_install.registry.identity import Identity, make_identity, renewed, serve_from, with_new_authority
from pai_install.site import Site
from pai_install.site.rules.ports import cluster_ports
from tests.unit.plan.conftest import CONFIG, LAYOUT

MakeSite = Callable[..., Site]
NOW = datetime(2026, 11, 26, tzinfo=UTC)
BOTH = (
    "authentication: {group-manager: {grouplist: [{groupname: nlp}]}}\n"
    "scheduler: {type: kueue}\nvirtual-clusters: [{name: default, share: rest, groups: [nlp]}]\n"
)
OIDC = BOTH.replace(
    "authentication: {",
    "authentication: {OIDC: true, issuer: {url: https://sso.example.org, client-id: pai, client-secret: s3cret}, ",
)


@pytest.fixture
def values(make_site: MakeSite, components: ComponentSet) -> Callable[..., dict[str, Any]]:
    def make(services: str, identity: Identity | None = None) -> dict[str, Any]:
        context = make_context(make_site(config=CONFIG, services=services), components, Path("/s"), identity)
        made = part_named("addon.console").variables(context, context.leader)
        assert isinstance(made, AddonVariables)
        return made.wanted[0].values

    return make


def identity_of(site: Site) -> Identity:
    return make_identity(served_names(site), NOW)


def read(values: dict[str, Any]) -> ConsoleSettings:
    return ConsoleSettings.model_validate_json(json.dumps(values["settings"]))


def test_its_program_reads_the_settings(values: Callable[..., dict[str, Any]]) -> None:
    found = read(values(f"{BOTH}console: {{names: [pai.example.org], legacy-ports: true, passwords: false}}\n"))
    assert found.names[0] == "pai.example.org"
    assert (found.port, found.http_port) == (443, 80)
    assert found.legacy_ports is not None
    assert (found.legacy_ports.rest_server, found.legacy_ports.webportal) == (9186, 9286)
    assert not found.sign_in.passwords
    assert found.oidc is None
    assert read(values(f"{BOTH}console: {{http: false}}\n")).http_port is None


def test_it_reads_pages_of_plugins(values: Callable[..., dict[str, Any]]) -> None:
    assert "links" not in values(BOTH)["settings"]
    pages = (
        "https://a.example.org",
        "http://10.0.0.1:3000/d?x=a@b",
        "https://[fd00::1]/#/",
        "https://a?u=https://b/c.js",
    )
    plugins = ", ".join(f"{{title: A, uri: '{page}'}}" for page in pages)
    found = read(values(f"{BOTH}webportal: {{plugins: [{plugins}]}}\n")).links
    assert tuple(link.address for link in found) == pages


def test_it_reads_the_monitoring_of_its_machine(values: Callable[..., dict[str, Any]]) -> None:
    assert read(values(BOTH)).monitoring is None
    found = read(values(f"{BOTH}monitoring: true\n")).monitoring
    assert found is not None
    assert (found.prometheus, found.alertmanager) == ("http://127.0.0.1:9091", "http://127.0.0.1:9093")


def test_it_reads_the_store_of_logs_of_its_machine(values: Callable[..., dict[str, Any]]) -> None:
    assert read(values(BOTH)).logs is None
    assert read(values(f"{BOTH}logs: true\n")).logs == "http://127.0.0.1:9428"


def test_prometheus_reads_its_numbers(make_site: MakeSite, values: Callable[..., dict[str, Any]]) -> None:
    assert read(values(BOTH)).metrics_port is None
    services = f"{BOTH}monitoring: true\n"
    site, port = make_site(config=CONFIG, services=services), read(values(services)).metrics_port
    jobs = {job["job_name"]: job for job in configuration(site, Scraping(30, 9100), "")["scrape_configs"]}
    assert jobs["console"]["static_configs"] == [{"targets": [f"127.0.0.1:{port}"]}]
    assert [it.clients for it in console_ports(site) if it.port == port] == ["itself"]
    assert "console" not in {job["job_name"] for job in outside(site, Scraping(30, 9100), "")["scrape_configs"]}


def test_the_clients_secret_is_a_file_of_the_secret(values: Callable[..., dict[str, Any]]) -> None:
    made = values(OIDC)
    found = read(made).oidc
    assert found is not None
    assert (found.issuer, found.client_id, found.username_claim) == ("https://sso.example.org", "pai", "sub")
    assert found.client_secret is not None
    assert made["secrets"]["secret_data"][found.client_secret.name] == "s3cret"
    assert "s3cret" not in json.dumps({name: value for name, value in made.items() if name != "secrets"})


def test_the_certificate_is_for_all_names_and_addresses(
    make_site: MakeSite, values: Callable[..., dict[str, Any]]
) -> None:
    services = f"{BOTH}console: {{names: [pai.example.org]}}\n"
    site = make_site(config=CONFIG, services=services)
    made = values(services, identity_of(site))
    certificate = x509.load_pem_x509_certificate(made["secrets"]["secret_data"]["tls.crt"].encode())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName)[0] == "pai.example.org"
    assert {machine.hostip for machine in site.control_planes} == {
        str(address) for address in names.get_values_for_type(x509.IPAddress)
    }


def test_it_is_renewed_in_time_and_with_the_authority(make_site: MakeSite) -> None:
    site = make_site(config=CONFIG, services=BOTH)
    identity, names = identity_of(site), served_names(site)
    assert renewed(identity, names, NOW) == identity
    late = renewed(identity, names, NOW + timedelta(days=350))
    assert late.console != identity.console
    rotated = serve_from(with_new_authority(identity, NOW), 2, NOW)
    assert rotated.console
    assert identity.console
    assert rotated.console.certificate != identity.console.certificate
    assert rotated.console.names == identity.console.names


def test_no_certificate_is_made_without_a_console_or_with_an_own_one(make_site: MakeSite) -> None:
    assert identity_of(make_site(config=CONFIG, services="")).console is None
    pair = make_serving(*make_authority("own", NOW), ["10.0.0.1"], NOW)
    certificate, key = ("".join(f"    {line}\n" for line in pem.splitlines()) for pem in pair)
    own = f"{BOTH}console:\n  certificate: |\n{certificate}  key: |\n{key}"
    assert identity_of(make_site(config=CONFIG, services=own)).console is None


def test_another_certificate_replaces_the_pods(make_site: MakeSite, values: Callable[..., dict[str, Any]]) -> None:
    identity = identity_of(make_site(config=CONFIG, services=BOTH))
    later = renewed(identity, served_names(make_site(config=CONFIG, services=BOTH)), NOW + timedelta(days=350))
    first, again, other = values(BOTH, identity), values(BOTH, identity), values(BOTH, later)
    assert first == again
    assert first["version"] != other["version"]
    assert first["secrets"]["secret_data"]["signing.key"] == other["secrets"]["secret_data"]["signing.key"]


def test_web_pages_of_jobs_need_groups_that_are_apart(make_site: MakeSite, components: ComponentSet) -> None:
    """Pods of the group would reach the pages of their colleagues, which have no password."""
    for isolation in ("true", "false"):
        config = f"{CONFIG}group_isolation: {isolation}\n"
        site = make_site(config=config, services=f"{BOTH}console: {{web-port: 8500}}\n")
        context = make_context(site, components, Path("/s"))
        made = part_named("addon.console").variables(context, context.leader)
        assert isinstance(made, AddonVariables)
        pages = read(dict(made.wanted[0].values)).web_pages
        wanted = (str(site.settings.pod_cidr), 8500) if isolation == "true" else None
        assert (pages and (pages.network, pages.port)) == wanted


def test_control_planes_alone_have_its_ports_and_its_image(make_site: MakeSite) -> None:
    site = make_site(config=CONFIG, services=f"{BOTH}console: {{port: 8443}}\n")
    for machine in site.present_machines:
        found = {port.port for port in ports(site, machine) if "console" in port.purpose}
        assert found == ({8443, 80} if machine.control_plane else set())
        assert ("pai-console" in images(site, machine)) is machine.control_plane


MORE = '  - {hostname: m2, hostip: 10.0.0.4, machine-type: cpu, pai-master: "true", pai-storage: "true"}\n'
THREE = LAYOUT + MORE + '  - {hostname: m3, hostip: 10.0.0.5, machine-type: cpu, pai-master: "true"}\n'
CACHE = "enable_docker_cache: true\ndocker_cache_storage_backend: filesystem\n"


@pytest.mark.parametrize(
    ("layout", "config", "services"),
    [
        (LAYOUT, "", ""),
        (LAYOUT, CACHE, "monitoring: true\nnode-exporter: {port: 9200}\nlogs: true\n"),
        (LAYOUT, CACHE, "docker-cache: {service_nodeport: 30501}\n"),
        (THREE, "component_store_port: 5081\n", "monitoring: {replicas: 2}\n"),
    ],
    ids=["least", "most", "cache", "three"],
)
def test_rules_of_a_site_know_the_ports_of_control_planes(
    make_site: MakeSite, layout: str, config: str, services: str
) -> None:
    site = make_site(layout=layout, config=CONFIG + config, services=f"{BOTH}{services}")
    own = {"console", "redirect of browsers to the console", "web pages of jobs"}
    found = {
        port.port: port.purpose
        for machine in site.control_planes
        for port in ports(site, machine)
        if port.protocol == "tcp" and port.purpose not in own
    }
    assert cluster_ports(site) == found


def test_without_a_console_there_is_no_add_on(make_site: MakeSite, components: ComponentSet) -> None:
    context = make_context(make_site(config=CONFIG, services=f"{BOTH}console: false\n"), components, Path("/s"))
    part = part_named("addon.console")
    assert part.variables(context, context.leader) is None
    assert not part.components(context.site)
    assert not part.ports(context.site, context.leader)


def test_openpais_first_administrator_is_a_user_with_a_hash(
    make_site: MakeSite, values: Callable[..., dict[str, Any]]
) -> None:
    admins = BOTH.replace("{grouplist", "{admin-group: {groupname: admins}, grouplist")
    services = f"{admins}rest-server: {{default-pai-admin-username: root, default-pai-admin-password: planted-4711}}\n"
    identity = identity_of(make_site(config=CONFIG, services=services))
    made = values(services, identity)
    (secret,) = made["passwords"]
    assert secret["metadata"]["name"] == "first.root"
    assert secret["secret_data"]["hash"].startswith("scrypt$")
    users = {(it["kind"], it["metadata"]["name"]) for it in made["objects"]}
    assert {("ServiceAccount", "root"), ("ClusterRoleBinding", "pai-user-root")} <= users
    assert "planted-4711" not in json.dumps(made)
    assert values(services, identity) == made
    public = services.replace("planted-4711", "admin-password")
    assert values(public, identity)["passwords"] == []
    assert values(services)["passwords"] == []
