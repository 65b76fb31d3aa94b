"""People of a directory on a cluster: a stand-in issuer on the controller host, one that never answers, and none."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.issuer import Issuer, issuing

from .conftest import SUBNET, Cluster, until
from .test_users import ask, job

pytestmark = [pytest.mark.lab, pytest.mark.soak]

GROUPS = """\
  group-manager:
    grouplist:
      - {groupname: vision, externalName: Vision Team}
      - {groupname: speech, externalName: Speech Team}
"""
LOGIN = """\
  OIDC: true
  issuer: {{url: "{url}", client-id: {client}, username-claim: preferred_username, ca-file: sso-ca.pem}}
"""
NAMESPACES = ("vision", "speech")
SERVER = ("--namespace=kube-system", "get", "pod", "kube-apiserver-lab-master")
CONFIG = "/etc/kubernetes/authentication/config.yaml"
# the API server reads its file each minute, and asks a new issuer then
READ_S = 150


@dataclass
class People:
    """The cluster, and the directory whose people log in. folder: for what is made for kubectl."""

    cluster: Cluster
    issuer: Issuer
    folder: Path

    def let_in(self, url: str) -> None:
        """The site as it is with that issuer; with none where it is empty."""
        login = LOGIN.format(url=url, client=self.issuer.client) if url else ""
        (self.cluster.site / "services-configuration.yaml").write_text(f"authentication:\n{login}{GROUPS}")
        (self.cluster.site / "sso-ca.pem").write_text(self.issuer.authority)
        report = self.cluster.converge()
        assert report["ok"], report["stderr"]

    def kubectl(self, name: str, group: str, *words: str, entry: Any = None) -> subprocess.CompletedProcess[str]:
        """As a person with a new token of the directory, as a client for logins would get it."""
        config = yaml.safe_load((self.cluster.site / ".pai" / "kubeconfig").read_text())
        token = self.issuer.token(preferred_username=name, groups=[group])
        config["users"] = [{"name": one["name"], "user": {"token": token}} for one in config["users"]]
        file = self.folder / f"{name}.kubeconfig"
        file.write_text(yaml.safe_dump(config))
        return ask(self.cluster, file, *words, entry=entry)

    def is_let_in(self, name: str = "alice") -> bool:
        """Whether the API server knows a person."""
        return self.kubectl(name, "Vision Team", "auth", "whoami").returncode == 0


@pytest.fixture(scope="module")
def people(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    """A cluster whose people log in at the stand-in, which the control plane reaches by the box's address."""
    folder = tmp_path_factory.mktemp("people")
    services = cluster.site / "services-configuration.yaml"
    before = services.read_text() if services.exists() else None
    with issuing(folder, f"{SUBNET}.1") as issuer:
        found = People(cluster, issuer, folder)
        try:
            assert not found.is_let_in()
            yield found
        finally:
            services.unlink() if before is None else services.write_text(before)
            (cluster.site / "sso-ca.pem").unlink(missing_ok=True)
            report = cluster.converge()
            cluster.kubectl("delete", "namespace", *NAMESPACES, "--ignore-not-found", "--wait=false")
    assert report["ok"], report["stderr"]


def restarts(cluster: Cluster) -> int:
    found = json.loads(cluster.kubectl(*SERVER, "--output=json"))
    return int(found["status"]["containerStatuses"][0]["restartCount"])


def test_people_of_the_directory_come_in_without_a_restart(people: People) -> None:
    before = restarts(people.cluster)
    people.let_in(people.issuer.url)
    assert until(people.is_let_in, READ_S), people.kubectl("alice", "Vision Team", "auth", "whoami").stderr
    assert restarts(people.cluster) == before
    known = json.loads(people.kubectl("alice", "Vision Team", "auth", "whoami", "--output=json").stdout)
    assert known["status"]["userInfo"]["username"] == "oidc:alice"
    assert "oidc:Vision Team" in known["status"]["userInfo"]["groups"]
    assert people.cluster.to_change() == []


def test_they_are_members_of_the_group_that_names_theirs(people: People) -> None:
    def alice(*words: str, entry: Any = None) -> subprocess.CompletedProcess[str]:
        return people.kubectl("alice", "Vision Team", *words, entry=entry)

    def carol(*words: str) -> subprocess.CompletedProcess[str]:
        return people.kubectl("carol", "Speech Team", *words)

    made = alice("create", "--filename=-", entry=job(people.cluster, "oidc.alice", "vision"))
    assert made.returncode == 0, made.stderr
    hers = ("get", "jobs", "--all-namespaces", "--selector=pai-install/user=oidc.alice", "--output=name")
    assert people.cluster.kubectl(*hers) == "job.batch/sleeps\n"
    for words in (("get", "pods"), ("get", "job/sleeps"), ("delete", "job/sleeps")):
        refused = carol(*words, "--namespace=vision")
        assert "forbidden" in refused.stderr.lower(), (words, refused.stdout, refused.stderr)
    forged = alice("create", "--filename=-", entry=job(people.cluster, "alice", "vision"))
    assert "oidc.alice" in forged.stderr, "she is not the user of that name"
    assert carol("get", "pods", "--namespace=speech").returncode == 0
    assert alice("delete", "job/sleeps", "--namespace=vision").returncode == 0


def test_an_issuer_that_does_not_answer_harms_no_one_else(people: People) -> None:
    """Also not an API server that begins anew, as after a reboot of its machine."""
    cluster, before = people.cluster, restarts(people.cluster)
    people.let_in(f"https://{SUBNET}.1:9")
    assert f"{SUBNET}.1:9" in cluster.on("lab-master", f"cat {CONFIG}")
    assert not until(lambda: cluster.ask("get", "--raw=/readyz").stdout != "ok", READ_S)
    assert restarts(cluster) == before
    cluster.on("lab-master", "crictl ps --name kube-apiserver --quiet | xargs crictl stop")
    time.sleep(5)
    assert until(lambda: ready_again(cluster, before), 180)
    assert not people.is_let_in(), "the issuer of the site answers no one"
    assert cluster.kubectl("get", "nodes", "--output=name").count("node/") == 3
    assert cluster.to_change() == []


def ready_again(cluster: Cluster, before: int) -> bool:
    """Whether the API server is another one, and ready."""
    try:
        return cluster.ask("get", "--raw=/readyz").stdout == "ok" and restarts(cluster) == before + 1
    except AssertionError:  # none answers
        return False


def test_who_corrects_the_issuer_lets_them_in_again(people: People) -> None:
    people.let_in(people.issuer.url)
    assert until(people.is_let_in, READ_S)


def test_without_the_setting_nobody_of_it_is_let_in(people: People) -> None:
    people.let_in("")
    assert until(lambda: not people.is_let_in(), READ_S)
    assert "jwt" not in yaml.safe_load(people.cluster.on("lab-master", f"cat {CONFIG}"))
    assert people.issuer.url not in people.cluster.on("lab-master", "grep -r issuer /etc/kubernetes || true")
    assert people.cluster.to_change() == []
