"""The registry cache: content that outlives its upstream and its pod, and rotation while containers run."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pai_install.run.environment import cached_program, site_components
from pai_install.site import load_site

from .blob_store import BlobStore
from .conftest import LOST, SUBNET, Cluster, begun, fault, pai_install, wait_for_phase
from .distribution import DistributionClient
from .own_image import own_image
from .upstream import Upstream

pytestmark = pytest.mark.lab

MASTER = "lab-master"
NAMESPACE = ("--namespace", "pai-docker-cache")
MACHINES = (MASTER, "lab-worker1", LOST)
CACHE = "docker-cache.pai.internal:30500"
OTHER_PORT = 30512
CONTENT = "/var/lib/pai-cache"
GC = "python3 /usr/local/lib/pai-install/docker-cache-gc.py"
# bcrypt of USER_PASSWORD
USERS = "cache-user:$2b$05$vneYE7mI5KGxkgC33yGjjuS2VdelAuZaSZ.rrK474njf7fPPCfWuS\n"
USER_PASSWORD = "Cache-pull-5"
# the account of the private upstream, and bcrypt of its password
PRIVATE_PASSWORD = "Robot-pull-7"
PRIVATE_USERS = "robot:$2b$05$U2LU8m1dpcE8Rwg6l6IuAer8GgkNlXdGQAIUVBjALjMR5DMtz7JeG"
IMAGES = tuple(f"docker.io/probe/one:{number}" for number in range(1, 6))
OTHER = "upstream.example.com/probe/two:1"
SETTINGS = """
enable_docker_cache: true
docker_cache_storage_backend: filesystem
docker_cache_fs_mount_path: /var/lib/pai-cache
docker_cache_remote_url: {url}
"""
SERVICES = """
registry:
  size-limit: 10Gi
  upstreams:
    - {{name: upstream.example.com, url: "{url}", username: robot, password: {password}}}
"""
PULL = "ctr -n probe images pull --hosts-dir /etc/containerd/certs.d {image}"
# who runs since when: every container of containerd and Docker, and both of them; those of a check that has just
# ended, whose pods are gone at once, run for another moment. Without those that end by themselves where a busy box
# makes them lose their lease
RUNNING = """
import json, subprocess
out = subprocess.run(["crictl", "ps", "-o", "json"], capture_output=True, check=True).stdout
space, name = "io.kubernetes.pod.namespace", "io.kubernetes.container.name"
found = [one for one in json.loads(out)["containers"] if one["labels"][space] != "pai-install-verify"]
found = [one for one in found if one["labels"][name] not in ("kube-controller-manager", "kube-scheduler")]
print(sorted((one["id"], one["createdAt"]) for one in found))
"""
FILES = "find /etc/pai-install /etc/containerd/certs.d -type f -printf '%p %T@ ' -exec sha256sum '{}' ';' | sort"
DOCKER = "systemctl show -P ExecMainStartTimestamp docker"
STARTED = (
    f"echo {base64.b64encode(RUNNING.encode()).decode()} | base64 -d | python3 -; {DOCKER}; {DOCKER} containerd; "
    "docker ps -q --no-trunc | xargs -r docker inspect -f '{{.Id}} {{.State.StartedAt}}'"
)


@pytest.fixture(scope="module")
def upstream(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upstream]:
    site = load_site(cluster.site).site
    program = cached_program(site, "registry")
    assert program is not None
    found = Upstream(program, tmp_path_factory.mktemp("upstream"), f"{SUBNET}.1", 5990)
    found.start()
    try:
        image = own_image(layout_of(cluster), found.folder / "image", "probe/one")
        for number in range(1, 6):
            found.push(image, "probe/one", str(number))
        yield found
    finally:
        found.stop()


@pytest.fixture(scope="module")
def private(upstream: Upstream, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upstream]:
    """One that asks for a login."""
    folder = tmp_path_factory.mktemp("private")
    login = f"robot:{PRIVATE_PASSWORD}"
    found = Upstream(upstream.program, folder, upstream.address, 5991, login, PRIVATE_USERS)
    found.start()
    try:
        found.push(own_image(layout_of(cluster), folder / "image", "probe/two"), "probe/two", "1")
        yield found
    finally:
        found.stop()


def layout_of(cluster: Cluster) -> Path:
    """The OCI layout of an image that the controller host has."""
    return site_components(load_site(cluster.site).site, lambda _line: None).image("busybox").layout


@pytest.fixture(scope="module")
def cached(cluster: Cluster, upstream: Upstream, private: Upstream) -> Iterator[Cluster]:
    """The cluster with a cache that is open to everyone; without it again afterwards."""
    config, services = cluster.site / "config.yaml", cluster.site / "services-configuration.yaml"
    before = {path: path.read_text() if path.exists() else None for path in (config, services)}
    docker = {name: cluster.on(name, DOCKER) for name in MACHINES}
    config.write_text((before[config] or "") + SETTINGS.format(url=upstream.url))
    services.write_text((before[services] or "") + SERVICES.format(url=private.url, password=PRIVATE_PASSWORD))
    try:
        report = cluster.converge()
        assert report["ok"], report["stderr"]
        assert docker == {name: cluster.on(name, DOCKER) for name in MACHINES}
        yield cluster
    finally:
        for path, text in before.items():
            path.unlink(missing_ok=True) if text is None else path.write_text(text)
        report = cluster.converge()
    assert report["ok"], report["stderr"]
    left = cluster.on(MASTER, "ls /etc/containerd/certs.d /etc/docker/certs.d 2>/dev/null; docker info")
    assert "upstream.example.com" not in left
    assert "30500" not in left
    assert str(OTHER_PORT) not in left
    # its namespace stays while a pod in it ends
    assert cluster.kubectl(*NAMESPACE, "get", "deployments,services", "-o", "name") == ""


def registry(cluster: Cluster, verb: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs `pai-install registry VERB`."""
    return pai_install("registry", verb, "--site", str(cluster.site), *words)


def pull(cluster: Cluster, machine: str, image: str) -> None:
    """Pulls as the kubelet does, and forgets what was pulled: each pull really asks."""
    cluster.on(machine, PULL.format(image=image))
    cluster.on(machine, f"ctr -n probe images rm --sync {image}")


def test_a_second_apply_changes_nothing(cached: Cluster) -> None:
    assert cached.to_change() == []


def test_pulls_survive_the_upstream_and_the_pod(cached: Cluster, upstream: Upstream, private: Upstream) -> None:
    for image in (IMAGES[0], OTHER):
        pull(cached, LOST, image)
    upstream.stop()
    private.stop()
    try:
        for image in (IMAGES[0], OTHER):
            pull(cached, "lab-worker1", image)
        cached.kubectl(*NAMESPACE, "delete", "pod", "--all", "--wait=true")
        cached.kubectl(*NAMESPACE, "rollout", "status", "deployment/docker-cache", "--timeout=180s")
        for image in (IMAGES[0], OTHER):
            pull(cached, MASTER, image)
    finally:
        upstream.start()
        private.start()


def test_pulls_survive_the_upstream_and_a_reboot_of_the_machine(cached: Cluster, upstream: Upstream) -> None:
    pull(cached, LOST, IMAGES[0])
    upstream.stop()
    try:
        fault(cached.site, MASTER, "power-off")
        fault(cached.site, MASTER, "heal")
        wait_for(cached)
        pull(cached, "lab-worker1", IMAGES[0])
    finally:
        upstream.start()


def wait_for(cluster: Cluster) -> None:
    """Returns once the cache serves again: its machine starts the whole control plane first."""
    deadline = time.monotonic() + 300
    while True:
        try:
            if somebody(cluster).ask("probe/one/manifests/1").status == 200:
                return
        except OSError:
            pass
        assert time.monotonic() < deadline, "the cache does not answer"
        time.sleep(2)


def test_docker_pulls_through_the_cache(cached: Cluster, upstream: Upstream) -> None:
    assert f"https://{CACHE}/" in cached.on(LOST, "docker info")
    cached.on(LOST, f"docker pull --quiet {IMAGES[1].removeprefix('docker.io/')}")


def test_the_verbs_say_what_is(cached: Cluster) -> None:
    shown = json.loads(registry(cached, "show", "--format", "json").stdout)
    assert shown["upstreams"] == {"docker.io": f"https://{CACHE}", "upstream.example.com": f"https://{CACHE}"}
    assert set(map(tuple, shown["machines"].values())) == {()}
    tested = registry(cached, "test", "--image", IMAGES[2])
    assert tested.returncode == 0, tested.stdout + tested.stderr
    warm = registry(cached, "warm", IMAGES[3], OTHER)
    assert warm.returncode == 0, warm.stdout + warm.stderr
    assert "MB in" in warm.stdout


def test_content_over_the_limit_goes_and_is_fetched_again(cached: Cluster) -> None:
    for image in (IMAGES[0], OTHER):
        pull(cached, LOST, image)
    collected = registry(cached, "gc", "--format", "json")
    assert collected.returncode == 0, collected.stdout + collected.stderr
    (found,) = json.loads(collected.stdout)["findings"]
    report = json.loads(found["evidence"])
    assert (report["dropped"]["count"], report["limit"]) == (0, 10 * 2**30)
    assert report["before"] > 100_000
    # the youngest content stays: a pull may be under way
    cached.on(MASTER, f"find {CONTENT} -name data -exec touch -d '1 day ago' {{}} +")
    emptied = json.loads(cached.on(MASTER, f"{GC} --limit 1"))
    assert (emptied["before"], emptied["after"]) == (report["after"], 0)
    assert cached.on(MASTER, f"find {CONTENT} -name data") == ""
    for image in (IMAGES[0], OTHER):
        pull(cached, "lab-worker1", image)
    assert cached.on(MASTER, f"find {CONTENT} -name data | wc -l").strip() != "0"
    status = registry(cached, "status")
    assert "of at most 10.7 GB" in status.stdout, status.stdout + status.stderr
    assert "blobs) " in status.stdout.partition("dropped ")[2]
    missing = registry(cached, "warm", "docker.io/probe/none:1")
    assert missing.returncode == 7, missing.stdout
    status = registry(cached, "status")
    assert status.returncode == 0, status.stdout + status.stderr
    assert "hits" in status.stdout


def login(cluster: Cluster) -> str:
    """The header by which a machine shows its login."""
    text = cluster.on(LOST, "cat /etc/containerd/certs.d/docker.io/hosts.toml")
    return next(line.split('"')[1] for line in text.splitlines() if line.startswith("Authorization"))


def answer(cluster: Cluster, authorization: str) -> str:
    """How the cache answers whoever shows this."""
    script = (
        "import ssl, urllib.error, urllib.request as u\n"
        f"r = u.Request('https://{CACHE}/v2/', headers={{'Authorization': '{authorization}'}})\n"
        "c = ssl.create_default_context(cafile='/etc/pai-install/registry/ca.pem')\n"
        "try: print(u.urlopen(r, context=c).status)\n"
        "except urllib.error.HTTPError as e: print(e.code)\n"
    )
    return cluster.on(LOST, f"echo {base64.b64encode(script.encode()).decode()} | base64 -d | python3 -").strip()


def started(cluster: Cluster) -> dict[str, str]:
    """Who runs since when on each machine, without those that are ending already: they would be missed later."""
    deadline = time.monotonic() + 60
    ending = "{range .items[*]}{.metadata.deletionTimestamp}{end}"
    while cluster.kubectl("get", "pods", "--all-namespaces", "--output", f"jsonpath={ending}"):
        assert time.monotonic() < deadline, "a pod does not end"
        time.sleep(1)
    return {name: cluster.on(name, STARTED) for name in MACHINES}


@pytest.fixture(scope="module")
def closed(cached: Cluster) -> Cluster:
    """The cache asks for a login."""
    config = cached.site / "config.yaml"
    config.write_text(config.read_text() + f"docker_cache_htpasswd: {base64.b64encode(USERS.encode()).decode()}\n")
    report = cached.converge()
    assert report["ok"], report["stderr"]
    return cached


def test_only_who_has_a_login_is_answered(closed: Cluster) -> None:
    user = base64.b64encode(f"cache-user:{USER_PASSWORD}".encode()).decode()
    stranger = base64.b64encode(b"cache-user:wrong").decode()
    assert [answer(closed, f"Basic {word}") for word in (user, stranger)] == ["200", "401"]
    pull(closed, LOST, IMAGES[2])


def somebody(cluster: Cluster, login: str = "") -> DistributionClient:
    """Who trusts the site's authority alone."""
    identity = json.loads((cluster.site / ".pai" / "registry.json").read_text())
    address = load_site(cluster.site).site.control_planes[0].hostip
    return DistributionClient(address, 30500, identity["authorities"][-1]["certificate"], login)


@pytest.fixture
def client(closed: Cluster) -> DistributionClient:
    """Somebody with a login."""
    return somebody(closed, f"cache-user:{USER_PASSWORD}")


def test_manifests_and_blobs_are_served_as_the_specification_says(client: DistributionClient) -> None:
    tagged = client.ask("probe/one/manifests/1")
    assert (tagged.status, tagged.headers["docker-content-digest"]) == (200, tagged.digest)
    assert tagged.headers["content-type"] == tagged.json["mediaType"]
    named = client.ask(f"probe/one/manifests/{tagged.digest}")
    assert (named.status, named.body) == (200, tagged.body)
    head = client.ask(f"probe/one/manifests/{tagged.digest}", method="HEAD")
    assert (head.status, head.headers["content-length"]) == (200, str(len(tagged.body)))
    layer = tagged.json["layers"][0]
    blob = f"probe/one/blobs/{layer['digest']}"
    whole = client.ask(blob)
    assert (whole.status, whole.digest) == (200, layer["digest"])
    head = client.ask(blob, method="HEAD")
    assert (head.status, head.headers["content-length"]) == (200, str(layer["size"]))
    part = client.ask(blob, Range="bytes=5-104")
    assert (part.status, part.body) == (206, whole.body[5:105])
    assert part.headers["content-range"] == f"bytes 5-104/{layer['size']}"
    rest = client.ask(blob, Range=f"bytes={layer['size'] - 10}-")
    assert (rest.status, rest.body) == (206, whole.body[-10:])
    assert client.ask(blob, Range=f"bytes={layer['size']}-").status == 416
    assert set("12345") <= set(client.ask("probe/one/tags/list").json["tags"])


def test_referrers_are_found_by_their_tag(client: DistributionClient, upstream: Upstream) -> None:
    """CNCF distribution has no referrers API; who gets 404 asks for the tag that the specification names instead."""
    subject = client.ask("probe/one/manifests/1").digest
    index = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [],
        "annotations": {"signed-by": "the-upstream"},
    }
    tag = subject.replace(":", "-")
    upstream.put_manifest("probe/one", tag, json.dumps(index).encode(), str(index["mediaType"]))
    assert client.ask(f"probe/one/referrers/{subject}").status == 404
    found = client.ask(f"probe/one/manifests/{tag}")
    assert (found.status, found.json["annotations"]) == (200, {"signed-by": "the-upstream"})


def test_errors_are_those_of_the_specification(client: DistributionClient) -> None:
    unknown = f"sha256:{'0' * 64}"
    answers = {
        path: client.ask(f"probe/one/{path}") for path in ("manifests/none", f"manifests/{unknown}", f"blobs/{unknown}")
    }
    assert {path: (answer.status, answer.error) for path, answer in answers.items()} == {
        "manifests/none": (404, "MANIFEST_UNKNOWN"),
        f"manifests/{unknown}": (404, "MANIFEST_UNKNOWN"),
        f"blobs/{unknown}": (404, "BLOB_UNKNOWN"),
    }
    stranger = replace(client, login="")
    refused = stranger.ask("probe/one/manifests/1")
    assert (refused.status, refused.headers["www-authenticate"].split()[0]) == (401, "Basic")
    for method, path in (("POST", "blobs/uploads/"), ("PUT", "manifests/1"), ("DELETE", f"manifests/{unknown}")):
        assert client.ask(f"probe/one/{path}", method=method).status == 405, method


def test_credentials_rotate_while_containers_run(closed: Cluster, pods: dict[str, str]) -> None:
    assert pods
    before, old = started(closed), login(closed)
    assert answer(closed, old) == "200"
    done = registry(closed, "rotate", "--credentials", "--yes", "--image", IMAGES[0])
    assert done.returncode == 0, done.stdout + done.stderr
    assert started(closed) == before
    assert (answer(closed, old), answer(closed, login(closed))) == ("401", "200")
    assert closed.to_change() == []


@pytest.mark.soak
def test_a_rotation_that_is_killed_ends_when_it_is_run_again(closed: Cluster) -> None:
    old = login(closed)
    earlier = set((closed.site / ".pai" / "runs").iterdir())
    words = ["registry", "rotate", "--credentials", "--yes", "--site", str(closed.site)]
    with begun(*words) as process:
        try:
            wait_for_phase(process, closed.site, earlier, "registries", LOST)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    done = registry(closed, "rotate", "--credentials", "--yes", "--image", IMAGES[0])
    assert done.returncode == 0, done.stdout + done.stderr
    assert (answer(closed, old), answer(closed, login(closed))) == ("401", "200")
    assert closed.to_change() == []


def test_a_wrong_password_of_an_upstream_changes_nothing(closed: Cluster) -> None:
    services = closed.site / "services-configuration.yaml"
    text = services.read_text()
    before = {name: closed.on(name, f"{FILES}; {STARTED}") for name in MACHINES}
    services.write_text(text.replace(PRIVATE_PASSWORD, "wrong"))
    try:
        done = registry(closed, "rotate", "--upstream", "upstream.example.com", "--yes")
    finally:
        services.write_text(text)
    assert done.returncode == 6, done.stdout + done.stderr
    assert "does not accept the account robot" in done.stdout + done.stderr
    line = next(number for number, line in enumerate(text.splitlines(), 1) if PRIVATE_PASSWORD in line)
    assert f"{services}:{line}:7: registry.upstreams[0]" in done.stderr
    assert {name: closed.on(name, f"{FILES}; {STARTED}") for name in MACHINES} == before
    assert closed.to_change() == []


def test_ca_rotates_around_a_machine_that_is_off(closed: Cluster, pods: dict[str, str]) -> None:
    assert pods
    before = started(closed)
    fault(closed.site, LOST, "power-off")
    try:
        done = registry(closed, "rotate", "--ca", "--yes")
        assert done.returncode == 5, done.stdout + done.stderr
        assert f"waiting for {LOST}" in done.stderr
        pull(closed, "lab-worker1", IMAGES[0])
    finally:
        fault(closed.site, LOST, "heal")
    finish = registry(closed, "rotate", "--ca", "--finish", "--yes")
    assert finish.returncode == 0, finish.stdout + finish.stderr
    after = started(closed)
    assert {name: after[name] for name in MACHINES if name != LOST} == {
        name: before[name] for name in MACHINES if name != LOST
    }
    identity = json.loads((closed.site / ".pai" / "registry.json").read_text())
    assert [one["generation"] for one in identity["authorities"]] == [2]
    pull(closed, LOST, IMAGES[0])
    assert closed.to_change() == []


@pytest.mark.soak
def test_the_port_moves_while_containers_run(closed: Cluster, pods: dict[str, str]) -> None:
    assert pods
    before = started(closed)
    services = closed.site / "services-configuration.yaml"
    services.write_text(services.read_text() + f"docker-cache: {{service_nodeport: {OTHER_PORT}}}\n")
    done = registry(closed, "rotate", "--endpoint", "--yes", "--image", IMAGES[0])
    assert done.returncode == 0, done.stdout + done.stderr
    assert started(closed) == before
    pull(closed, LOST, IMAGES[4])
    for port, status in ((30500, "closed"), (OTHER_PORT, "open")):
        host = CACHE.partition(":")[0]
        ask = f"timeout 5 bash -c '</dev/tcp/{host}/{port}' 2>/dev/null && echo open || echo closed"
        assert closed.on(LOST, ask).strip() == status, port
    assert closed.to_change() == []


def test_no_secret_is_in_what_runs_left_behind(closed: Cluster) -> None:
    identity = json.loads((closed.site / ".pai" / "registry.json").read_text())
    secrets = [identity["logins"][-1]["password"], login(closed).split()[1], USERS.split(":")[1].strip()]
    secrets += [
        PRIVATE_PASSWORD,
        identity["cache"]["key"].splitlines()[3],
        identity["store"]["key"].splitlines()[3],
        identity["authorities"][0]["key"].splitlines()[3],
    ]
    for path in Path(closed.site / ".pai" / "runs").rglob("*"):
        text = path.read_text(errors="replace") if path.is_file() else ""
        assert not [secret for secret in secrets if secret in text], path
    objects = closed.kubectl("get", "all,configmaps,secrets", "-A", "-o", "yaml")
    assert not [secret for secret in secrets if secret in objects]
    # not as arguments: sudo writes those into the journal
    words = base64.b64encode("\n".join(secrets).encode()).decode()
    folders = "/etc/pai-install /etc/containerd/certs.d /var/lib/pai-install /var/log"
    for machine in MACHINES:
        closed.on(machine, f"(umask 077; echo {words} | base64 -d > /run/words)")
        readable = f"find {folders} -type f -perm /044 -exec grep -lF -f /run/words {{}} +"
        assert closed.on(machine, f"{readable} || true") == ""
        assert closed.on(machine, "journalctl --no-pager | grep -cF -f /run/words || true").strip() == "0"
        closed.on(machine, "rm /run/words")


@pytest.fixture
def blobs(closed: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlobStore]:
    """A storage account with a container of that name; the site has it as its back end until the end."""
    found = BlobStore(tmp_path_factory.mktemp("blobs"), f"{SUBNET}.1", 5992)
    found.start()
    config, services = closed.site / "config.yaml", closed.site / "services-configuration.yaml"
    before = {path: path.read_text() for path in (config, services)}
    try:
        found.make("cache")
        yield found
    finally:
        for path, text in before.items():
            path.write_text(text)
        found.stop()


@pytest.mark.soak
def test_content_moves_to_azure_while_it_serves(closed: Cluster, upstream: Upstream, blobs: BlobStore) -> None:
    """What was cached in the folder comes from Azure: the upstream is off, and nothing was pulled in between."""
    config, services = closed.site / "config.yaml", closed.site / "services-configuration.yaml"
    # Azure knows no last use, so no limit either: a rotation carries out the move alone
    services.write_text(services.read_text().replace("  size-limit: 10Gi\n", ""))
    assert closed.converge()["ok"]
    assert registry(closed, "warm", IMAGES[4], OTHER).returncode == 0
    azure = f"docker_cache_azure_account_name: {blobs.account}\ndocker_cache_azure_container_name: cache\n"
    text = config.read_text().replace("storage_backend: filesystem", "storage_backend: azure") + azure
    config.write_text(f"{text}docker_cache_azure_account_key: {base64.b64encode(b'another').decode()}\n")
    services.write_text(services.read_text().replace("registry:", f"registry:\n  azure-endpoint: {blobs.endpoint}", 1))
    refused = registry(closed, "rotate", "--backend", "--yes")
    assert refused.returncode == 6, refused.stdout + refused.stderr
    assert "config.yaml:" in refused.stdout + refused.stderr
    assert "docker_cache_azure_account_key" in refused.stdout + refused.stderr
    config.write_text(f"{text}docker_cache_azure_account_key: {blobs.key}\n")
    done = registry(closed, "rotate", "--backend", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "still in /var/lib/pai-cache" in done.stderr
    runs = [path for path in (closed.site / ".pai" / "runs").rglob("*") if path.is_file()]
    assert not [path for path in runs if blobs.key in path.read_text(errors="replace")]
    closed.on(MASTER, "mv /var/lib/pai-cache /var/lib/pai-cache.away")
    upstream.stop()
    try:
        warm = registry(closed, "warm", IMAGES[4], OTHER)
        assert warm.returncode == 0, warm.stdout + warm.stderr
        pull(closed, LOST, IMAGES[4])
    finally:
        upstream.start()
        closed.on(MASTER, "mv /var/lib/pai-cache.away /var/lib/pai-cache")
    assert closed.to_change() == []
