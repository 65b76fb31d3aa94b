"""The Docker cache's configuration: no name and no password becomes anything but itself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ansible.errors import AnsibleError
from jinja2 import Environment, StrictUndefined

from tests.ansible_path import PLAYBOOKS
from tests.unit.modules.conftest import load

ROOT = Path(__file__).parents[3]
NASTY = ["a b", "#x", '"', "'", "\\", "$HOME", "${HOME}", "%[env(HOME)]", "{1}", "é", "--", "", "a' password 'b"]
SETTINGS = {"azure": {}, "keep_days": 30}
AZURE = {"account": "acc", "access_key": "key", "container": "c", "endpoint": ""}


@pytest.fixture(scope="module")
def plugin() -> ModuleType:
    """The filters, as Ansible loads them."""
    return load(PLAYBOOKS / "filter_plugins" / "pai_docker_cache.py", "pai_docker_cache")


def upstream(name: str = "docker.io", **other: Any) -> dict[str, Any]:
    """One as the role is given it."""
    words = {"username": "", "password": "", "ca": "", "port": 5001, "debug_port": 6001}
    return {"name": name, "remote": f"https://{name}/", **words, **other}


def front(plugin: ModuleType, **other: Any) -> str:
    """HAProxy's configuration."""
    words = {"port": 5000, "upstreams": [upstream()], "users": [], "logins": [], **other}
    environment = Environment(trim_blocks=True, undefined=StrictUndefined, autoescape=False)  # noqa: S701 - no HTML
    environment.filters.update(plugin.FilterModule().filters())
    text = (ROOT / "roles/docker_cache/templates/front.cfg.j2").read_text()
    return environment.from_string(text).render({f"docker_cache_{name}": value for name, value in words.items()})


@pytest.mark.parametrize("text", ["a\nb", "a\rb", "\0", "\x1b[1m", "\u2028", "\x85"])
def test_what_would_end_a_line_is_refused(plugin: ModuleType, text: str) -> None:
    with pytest.raises(AnsibleError, match="cannot be printed"):
        front(plugin, logins=[{"name": "x", "password": text, "generation": 1}])


def test_without_accounts_everybody_may_pull(plugin: ModuleType) -> None:
    assert "auth" not in front(plugin)
    assert "http-request auth realm" in front(plugin, users=[{"name": "a", "password_hash": "$2y$x"}])
    assert "http-request auth realm" in front(plugin, logins=[{"name": "a", "password": "x", "generation": 1}])


def test_haproxy_takes_it(plugin: ModuleType, tmp_path: Path) -> None:
    """Whatever is in it. It needs no certificate to read the rest."""
    haproxy = shutil.which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin")
    if haproxy is None:
        pytest.skip("no haproxy on this box")
    logins = [{"name": f"m{number}", "password": text, "generation": 1} for number, text in enumerate(NASTY)]
    upstreams = [upstream(), upstream("r.example.com:5000", port=5002, debug_port=6002)]
    text = front(plugin, logins=logins, upstreams=upstreams)
    path = tmp_path / "front.cfg"
    path.write_text("\n".join(line.partition(" ssl crt ")[0] for line in text.splitlines()) + "\n")
    done = subprocess.run([haproxy, "-c", "-f", path], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr


def files(plugin: ModuleType, given: dict[str, Any], settings: dict[str, Any] = SETTINGS) -> dict[str, dict[str, Any]]:
    """Name -> item of pai_files."""
    found = plugin.upstream_files(given, settings, "/f")
    return {item["path"].removeprefix("/f/"): item for item in found}


def registry(item: dict[str, Any]) -> dict[str, Any]:
    """The registry's configuration."""
    first, _, text = item["content"].partition("\n")
    assert first.startswith("#")
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.mark.parametrize("password", [*NASTY, "END", "a\nEND\nb", "$(id)", "`id`", "\u2028"])
def test_a_registry_is_told_the_login_it_has(plugin: ModuleType, tmp_path: Path, password: str) -> None:
    item = files(plugin, upstream(username=password, password=password))["login-docker.io"]
    assert item["mode"] == "0700"
    script = tmp_path / "login"
    script.write_text(item["content"])
    said = subprocess.run(["sh", script, "get"], capture_output=True, text=True, timeout=10, check=True).stdout
    assert json.loads(said) == {"Username": password, "Secret": password}


def test_a_registrys_file_holds_no_login(plugin: ModuleType) -> None:
    item = files(plugin, upstream(username="robot", password="planted"))["registry-docker.io.yml"]
    assert "planted" not in item["content"]
    proxy = registry(item)["proxy"]
    assert proxy["remoteurl"] == "https://docker.io"
    assert proxy["exec"]["command"] == "/config/login-docker.io"


def test_content_is_kept_apart_for_each_upstream(plugin: ModuleType) -> None:
    local = registry(files(plugin, upstream("quay.io"))["registry-quay.io.yml"])["storage"]
    assert local["filesystem"] == {"rootdirectory": "/data/quay.io"}
    azure = registry(files(plugin, upstream("quay.io"), {**SETTINGS, "azure": AZURE})["registry-quay.io.yml"])
    assert azure["storage"]["azure"] == {
        "accountname": "acc",
        "accountkey": "key",
        "container": "c",
        "credentials": {"type": "shared_key"},
        "rootdirectory": "/quay.io",
    }
    assert azure["storage"]["redirect"] == {"disable": True}


def test_a_registry_drops_what_is_in_azure_alone_and_remembers_nothing_of_what_is_there(plugin: ModuleType) -> None:
    local = registry(files(plugin, upstream())["registry-docker.io.yml"])
    azure = registry(files(plugin, upstream(), {**SETTINGS, "azure": AZURE})["registry-docker.io.yml"])
    assert (local["proxy"]["ttl"], azure["proxy"]["ttl"]) == ("0s", "720h")
    assert "cache" not in local["storage"].keys() | azure["storage"].keys()


def test_another_blob_service_is_named(plugin: ModuleType) -> None:
    azure = {**AZURE, "endpoint": "http://10.0.0.9:10000/acc"}
    found = registry(files(plugin, upstream(), {**SETTINGS, "azure": azure})["registry-docker.io.yml"])
    assert found["storage"]["azure"]["serviceurl"] == "http://10.0.0.9:10000/acc"


def test_an_authority_lies_in_a_folder_of_the_upstreams_own(plugin: ModuleType) -> None:
    assert "ca/docker.io/ca.pem" not in files(plugin, upstream())
    assert files(plugin, upstream(ca="PEM"))["ca/docker.io/ca.pem"]["content"] == "PEM"


def test_what_is_no_longer_wanted_goes(plugin: ModuleType) -> None:
    found = [{"path": "/f/ca", "isdir": True}, {"path": "/f/old", "isdir": False}, {"path": "/f/new", "isdir": False}]
    assert plugin.but_for(found, [{"path": "/f/new"}]) == [{"path": "/f/old", "state": "absent", "secret": True}]
