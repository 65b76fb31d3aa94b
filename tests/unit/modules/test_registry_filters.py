"""Files of the clients of registries: what containerd, Docker and the kubelet read, made of values that end nothing."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

CACHE = {"endpoint": "https://cache.example:30500", "ca": "bundle", "auth_token": "bWFjaGluZTpw"}
QUAY = {"name": "quay.io", "server": "https://quay.io", "fallback": True, "endpoints": [CACHE]}
PEM = "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n"


class Tagged(str):  # noqa: SLOT000 - as Ansible makes them
    """Ansible's values are subclasses of the plain types."""


def parsed(filters: Any, upstream: dict[str, Any]) -> dict[str, Any]:
    """hosts.toml as containerd reads it."""
    return tomllib.loads(filters.hosts_toml(upstream))


def test_registry_is_asked_by_the_cache_and_then_itself(filters: Any) -> None:
    """The time limit is short: while the cache does not answer, pulls go on by the registry itself."""
    assert parsed(filters, QUAY) == {
        "server": "https://quay.io",
        "host": {
            "https://cache.example:30500": {
                "capabilities": ["pull", "resolve"],
                "ca": ["/etc/pai-install/registry/ca.pem"],
                "header": {"Authorization": "Basic bWFjaGluZTpw"},
                "dial_timeout": "5s",
            }
        },
    }


def test_without_fallback_the_last_endpoint_is_the_server(filters: Any) -> None:
    """Else containerd would ask the registry of that name as the last one."""
    mirror = {"endpoint": "https://first.example"}
    found = parsed(filters, {**QUAY, "fallback": False, "endpoints": [mirror, CACHE]})
    assert found["server"] == CACHE["endpoint"]
    assert (found["ca"], found["header"]["Authorization"]) == (
        ["/etc/pai-install/registry/ca.pem"],
        "Basic bWFjaGluZTpw",
    )
    assert list(found["host"]) == ["https://first.example"]
    assert "host" not in parsed(filters, {**QUAY, "fallback": False})


def test_registry_without_endpoints_has_its_server_and_its_authority(filters: Any) -> None:
    found = parsed(filters, {"name": "r:5000", "server": "http://r:5000", "endpoints": []})
    assert found == {"server": "http://r:5000"}
    own = {"name": "r", "server": "https://r", "ca": PEM, "fallback": False}
    assert parsed(filters, own)["ca"] == [filters.authority_path(PEM)]


def test_insecure_registry_may_have_a_certificate_of_its_own_making(filters: Any) -> None:
    """As with Docker, whose word this is."""
    plain = {"name": "r.example", "server": "https://r.example", "insecure": True, "endpoints": []}
    assert parsed(filters, plain) == {"server": "https://r.example", "skip_verify": True}


def test_endpoints_are_asked_in_their_order(filters: Any) -> None:
    urls = ["https://z.example", "https://a.example", "https://m.example"]
    text = filters.hosts_toml({**QUAY, "endpoints": [{**CACHE, "endpoint": url} for url in urls]})
    tables = [line for line in text.splitlines() if line.startswith("[host.") and "header" not in line]
    assert tables == [f'[host."{url}"]' for url in urls], "containerd takes the order of these lines"
    assert list(tomllib.loads(text)["host"]) == urls


@pytest.mark.parametrize(
    ("url", "whole"),
    [("https://h.example", False), ("https://h.example/v2", False), ("https://h.example/v2/hub/", True)],
)
def test_project_of_a_mirror_is_a_path_below_v2(filters: Any, url: str, *, whole: bool) -> None:
    host = parsed(filters, {**QUAY, "endpoints": [{"endpoint": url}]})["host"][url]
    assert host.get("override_path", False) is whole


@pytest.mark.parametrize("word", ['x"]\nserver = "http://evil', "a\\u0022", "'''", Tagged("plain")])
def test_no_value_ends_its_place(filters: Any, word: str) -> None:
    upstream = {"name": "q", "server": word, "endpoints": [{"endpoint": word, "auth_token": word}]}
    found = parsed(filters, upstream)
    assert found["server"] == word
    assert found["host"] == {
        word: {
            "capabilities": ["pull", "resolve"],
            "header": {"Authorization": f"Basic {word}"},
            "dial_timeout": "5s",
        }
    }


def test_files_of_all_registries_and_their_authorities(filters: Any) -> None:
    mirrored = {**QUAY, "name": "gcr.io", "endpoints": [{"endpoint": "https://m.example", "ca": PEM}]}
    files = {item["path"]: item for item in filters.registry_files([QUAY, mirrored], "bundle's PEM")}
    assert list(files) == [
        "/etc/pai-install/registry/ca.pem",
        filters.authority_path(PEM),
        "/etc/containerd/certs.d/quay.io/hosts.toml",
        "/etc/containerd/certs.d/gcr.io/hosts.toml",
    ]
    assert files[filters.authority_path(PEM)]["content"] == PEM
    assert all(item["live"] for item in files.values()), "containerd is not restarted for any of them"
    assert filters.registry_files([], "") == []


def test_mirror_with_a_login_is_for_root_alone(filters: Any) -> None:
    files = filters.registry_files([QUAY, {"name": "open", "server": "https://open"}], "")
    assert [(file["mode"], file["secret"]) for file in files] == [("0600", True), ("0644", False)]


def test_the_store_is_known_by_its_authorities_to_containerd_downloads_and_docker(filters: Any) -> None:
    known, dockers, hosts = filters.store_files("registry.pai.internal", "r.example:5080", "PEM\n", docker=True)
    assert tomllib.loads(hosts["content"]) == {
        "host": {"https://r.example:5080": {"capabilities": ["pull", "resolve"], "ca": [known["path"]]}}
    }
    assert (known["path"], known["content"]) == ("/etc/pai-install/store/ca.pem", "PEM\n")
    assert (dockers["path"], dockers["content"]) == ("/etc/docker/certs.d/r.example:5080/ca.crt", "PEM\n")
    assert all(item["live"] for item in (known, dockers, hosts)), "nothing is restarted for any of them"
    without = filters.store_files("registry.pai.internal", "r.example:5080", "PEM\n", docker=False)
    assert [file["path"] for file in without] == [known["path"], hosts["path"]]


def test_logins_are_merged_and_for_root_alone(filters: Any) -> None:
    logins = [{"registry": "docker.io", "auth_token": "eA=="}, {"registry": "r.example:5000", "auth_token": "eQ=="}]
    files = filters.registry_logins(logins)
    assert [file["path"] for file in files] == ["/var/lib/kubelet/config.json", "/root/.docker/config.json"]
    assert files[0]["merge_json"]["auths"] == {
        "https://index.docker.io/v1/": {"auth": "eA=="},
        "r.example:5000": {"auth": "eQ=="},
    }
    assert {(file["mode"], file["secret"], file["if_there"]) for file in files} == {("0600", True, False)}


def test_without_logins_a_file_of_the_admins_is_left_as_it_is(filters: Any) -> None:
    assert {(file["mode"], file["if_there"]) for file in filters.registry_logins([])} == {("", True)}


def test_docker_gets_the_authority_of_each_host_that_has_one_of_its_own(filters: Any) -> None:
    hub = {
        "name": "docker.io",
        "ca": "",
        "endpoints": [
            {"endpoint": "https://harbor.example:8443", "ca": PEM},
            {"endpoint": "https://cache.example:30500", "ca": "bundle"},
            {"endpoint": "https://plain.example", "ca": ""},
        ],
    }
    private = {"name": "registry.example", "ca": PEM, "endpoints": []}
    files = filters.docker_authorities([hub, private], "cache.example:30500", "BUNDLE")
    assert {it["path"].removeprefix("/etc/docker/certs.d/"): it["content"] for it in files} == {
        "cache.example:30500/ca.crt": "BUNDLE",
        "harbor.example:8443/ca.crt": PEM,
        "registry.example/ca.crt": PEM,
    }
    assert filters.docker_authorities([QUAY], "", "") == []
