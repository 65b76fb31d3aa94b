"""A console as the add-on starts it, on a real API server with the objects of the quickstart's site, and its users.

There are no machines: no pod runs. Tests write the status of jobs that a machine would report.
"""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pai_install.components.catalogue import load_catalogue
from pai_install.components.model import ComponentSet, ImageArtifact
from pai_install.parts.addon import AddonVariables
from pai_install.parts.registry import make_context, part_named
from pai_install.profile.project import profile_of
from pai_install.registry.compile import served_names
from pai_install.registry.identity import Identity, make_identity
from pai_install.scheduling.job_kinds import KINDS
from pai_install.site import Site, load_site
from pai_install.users.changes import UserGroup, joining
from pai_install.users.credentials import Credential, CredentialKind, secret_of
from pai_install.users.read import UserObjects
from tests.addons import ROOT, addon_action
from tests.integration.control_plane import Api, Json, running
from tests.integration.shared_control_plane import ControlPlane
from tests.ports import free_port

__all__ = ["Console", "console", "quickstart"]

ADDONS = ("groups", "virtual_clusters", "console")
# plural of Kueue's kinds -> kind, scope
QUEUES = {
    "clusterqueues": ("ClusterQueue", "Cluster"),
    "cohorts": ("Cohort", "Cluster"),
    "localqueues": ("LocalQueue", "Namespaced"),
    "resourceflavors": ("ResourceFlavor", "Cluster"),
    "topologies": ("Topology", "Cluster"),
    "workloadpriorityclasses": ("WorkloadPriorityClass", "Cluster"),
    "workloads": ("Workload", "Namespaced"),
}
# user -> groups
PEOPLE = {"root": ("admins",), "alice": ("team",), "bob": ("team",)}


@dataclass(frozen=True)
class Console:
    """A running console. url: without a path. authority: PEM file of its certificate. admin: of the API server."""

    url: str
    authority: Path
    admin: Api
    folder: Path

    def password(self, name: str) -> str:
        return f"the password of {name}"

    def ask(self, method: str, path: str, token: str = "", body: Any = None, kind: str = "") -> tuple[int, str]:
        """Status and text of an answer below /rest-server."""
        headers = {"Content-Type": kind or "application/json"}
        headers |= {"Authorization": f"Bearer {token}"} if token else {}
        data = body.encode() if isinstance(body, str) else None if body is None else json.dumps(body).encode()
        address = f"{self.url}/rest-server{path}"
        request = urllib.request.Request(address, data, headers, method=method)  # noqa: S310 # ours
        trust = ssl.create_default_context(cafile=str(self.authority))
        try:
            with urllib.request.urlopen(request, timeout=30, context=trust) as answer:  # noqa: S310 # ours
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def token(self, name: str) -> str:
        body = {"username": name, "password": self.password(name)}
        status, text = self.ask("POST", "/api/v2/authn/basic/login", body=body)
        assert status == 200, text
        return str(json.loads(text)["token"])


@dataclass(frozen=True)
class Installed:
    """A site with a console that does not run yet. settings: of the console. identity: with its certificate."""

    site: Site
    api: Api
    settings: Json
    identity: Identity


def large_site(folder: Path) -> Site:
    """The quickstart's site with machines as large as the jobs of OpenPAI's tests need."""
    shutil.copytree(ROOT / "layouts/quickstart", folder, ignore=shutil.ignore_patterns(".pai"))
    layout = folder / "layout.yaml"
    layout.write_text(layout.read_text().replace("mem: 32Gi", "mem: 512Gi").replace("vcore: 2\n", "vcore: 64\n"))
    return load_site(folder).site


def site_objects(site: Site, identity: Identity) -> Iterator[tuple[Json, Mapping[str, Any]]]:
    """The objects of the quickstart's add-ons, and the values that they come from."""
    images = {name for it in load_catalogue().components.values() for name in it.image_names}
    artifacts = tuple(ImageArtifact(name, "1", "sha256:1", Path()) for name in sorted(images))
    context = make_context(site, ComponentSet((), artifacts, "1.36.3"), Path(), identity)
    for name in ADDONS:
        made = part_named(f"addon.{name}").variables(context, context.leader)
        assert isinstance(made, AddonVariables)
        values = made.wanted[0].values
        for entry in addon_action().objects_of(ROOT / "addons" / name, values, ()):
            yield entry, values


@pytest.fixture(scope="module")
def quickstart(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The quickstart's site."""

    def install(api: Api) -> Installed:
        return installed_site(api, large_site(tmp_path_factory.mktemp("site") / "site"), PEOPLE)

    return control_plane.prepared("quickstart", install)


@pytest.fixture(scope="module")
def console(quickstart: Installed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    folder = tmp_path_factory.mktemp("console")
    large_site(folder / "site")  # commands of a module may write there
    with console_of(quickstart, folder) as made:
        yield made


@contextmanager
def console_of(installed: Installed, folder: Path) -> Iterator[Console]:
    """The console of a site."""
    with served(installed, folder) as url:
        made = Console(url, folder / "ca.crt", installed.api, folder)
        until_ready(made)
        yield made


def installed_site(api: Api, site: Site, people: Mapping[str, tuple[str, ...]]) -> Installed:
    """Applies the objects and users of a site with a console. people: user -> groups."""
    names = replace(served_names(site), console=("localhost", "127.0.0.1"))
    identity = make_identity(names, datetime.now(UTC))
    for one in definitions():
        api.apply(one)
    settings: Json = {}
    for entry, values in site_objects(site, identity):
        until_applied(api, entry)
        settings = dict(values.get("settings", settings))
    known = {one.name: UserGroup(one.name, one.namespace, one.administrators) for one in profile_of(site).groups}
    for name, groups in people.items():
        join(api, name, [known[group] for group in groups])
    return Installed(site, api, settings, identity)


def definitions() -> Iterator[Json]:
    """The kinds of jobs and queues that no API server has by itself, with any content."""
    for kind in KINDS:
        if kind.group not in ("", "batch"):
            yield definition(kind.group, kind.resource, kind.name, (kind.version,))
    for plural, (name, scope) in QUEUES.items():
        yield definition("kueue.x-k8s.io", plural, name, ("v1beta1", "v1beta2"), scope)


def definition(group: str, plural: str, name: str, versions: Sequence[str], scope: str = "Namespaced") -> Json:
    plain = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "singular": name.lower(), "kind": name},
            "versions": [
                {"name": it, "served": True, "storage": it == versions[-1], "schema": {"openAPIV3Schema": plain}}
                for it in versions
            ],
        },
    }


def until_applied(api: Api, entry: Json) -> None:
    """Applies an object. A kind that was just defined is not known at once."""
    end = time.monotonic() + 90
    while True:
        try:
            api.apply(entry)
        except urllib.error.HTTPError as error:
            if error.code != 404 or time.monotonic() > end:
                raise AssertionError(f"{entry['kind']} {entry['metadata']['name']}: {error.read()!r}") from error
            time.sleep(0.3)
        else:
            return


def until_ready(console: Console) -> None:
    """Waits for the first reading of the cluster, and of its users."""
    body, end = {"username": "root", "password": console.password("root")}, time.monotonic() + 120

    def found() -> tuple[int, str]:
        status, text = console.ask("POST", "/api/v2/authn/basic/login", body=body)
        return console.ask("GET", "/api/v2/jobs", json.loads(text)["token"]) if status == 200 else (status, text)

    while (last := found())[0] != 200:
        assert time.monotonic() < end, (last, (console.folder / "console.log").read_text()[-3000:])
        time.sleep(0.5)


def join(api: Api, name: str, groups: Sequence[UserGroup]) -> None:
    """A user as `user add` makes it, with a password."""
    from pai_install.console.sign_in.hashing import hashed  # noqa: PLC0415 - loads argon2

    for one in joining(name, groups, UserObjects()):
        api.apply(one.object)
    uid = api.ask("GET", f"/api/v1/namespaces/pai-users/serviceaccounts/{name}")["metadata"]["uid"]
    since = datetime.now(UTC).isoformat(timespec="seconds")
    data = {"hash": hashed(f"the password of {name}"), "since": since}
    api.apply(secret_of(Credential(CredentialKind.PASSWORD, name, name, uid, data=data)))


class served:  # noqa: N801 - a context manager
    """The program of the image, with the settings of the add-on at other places."""

    def __init__(self, installed: Installed, folder: Path) -> None:
        api, settings, identity = installed.api, installed.settings, installed.identity
        assert identity.console
        self._log, self._port = folder / "console.log", free_port()
        (folder / "tls.crt").write_text(identity.console.certificate)
        (folder / "tls.key").write_text(identity.console.key.get_secret_value())
        (folder / "signing.key").write_text("5" * 64)
        (folder / "ca.crt").write_text(identity.bundle)
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}}
        account = "/api/v1/namespaces/pai-console/serviceaccounts/pai-console/token"
        (folder / "token").write_text(api.ask("POST", account, body)["status"]["token"])
        own: Json = {
            "names": ["localhost", "127.0.0.1"],
            "port": self._port,
            "http_port": None,
            "metrics_port": None,
            "certificate": str(folder / "tls.crt"),
            "key": str(folder / "tls.key"),
            "signing_key": str(folder / "signing.key"),
            "api_server": f"https://127.0.0.1:{api.port}",
            "api_authority": str(api.authority),
            "api_token": str(folder / "token"),
        }
        if pages := settings.get("web_pages"):
            own["web_pages"] = {**pages, "port": free_port()}
        (folder / "console.json").write_text(json.dumps({**settings, **own}))
        environment = [f"PYTHONPATH={ROOT / 'installer'}", f"PATH={os.environ['PATH']}"]
        words = ["env", *environment, sys.executable, "-m", "pai_install.console", "--settings"]
        self._running = running([*words, folder / "console.json"], self._log)
        self._authority = folder / "ca.crt"

    def __enter__(self) -> str:
        self.process: subprocess.Popen[bytes] = self._running.__enter__()
        url, end = f"https://localhost:{self._port}", time.monotonic() + 120
        trust = ssl.create_default_context(cafile=str(self._authority))
        while True:
            try:
                with urllib.request.urlopen(f"{url}/healthz", timeout=5, context=trust):  # noqa: S310 # ours
                    return url
            except OSError:
                assert self.process.poll() is None, self._log.read_text()
                assert time.monotonic() < end, self._log.read_text()
                time.sleep(0.3)

    def __exit__(self, *error: object) -> None:
        self._running.__exit__(None, None, None)
