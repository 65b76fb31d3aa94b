"""The registry cache: content that outlives its upstream and its pod, and rotation while containers run."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pai_install.run.environment import cached_program, site_components
from pai_install.site import load_site

from .conftest import LOST, SUBNET, Cluster, fault, pai_install
from .upstream import Upstream

pytestmark = pytest.mark.lab

MASTER = "lab-master"
NAMESPACE = ("--namespace", "pai-docker-cache")
MACHINES = (MASTER, "lab-worker1", LOST)
CACHE = "docker-cache.pai.internal:30500"
# bcrypt of USER_PASSWORD
USERS = "cache-user:$2b$05$vneYE7mI5KGxkgC33yGjjuS2VdelAuZaSZ.rrK474njf7fPPCfWuS\n"
USER_PASSWORD = "Cache-pull-5"
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
  upstreams:
    - {{name: upstream.example.com, url: "{url}"}}
"""
PULL = "ctr -n probe images pull --hosts-dir /etc/containerd/certs.d {image}"
# who runs since when: every container of containerd and Docker, and both of them
RUNNING = """
import json, subprocess
out = subprocess.run(["crictl", "ps", "-o", "json"], capture_output=True, check=True).stdout
print(sorted((one["id"], one["createdAt"]) for one in json.loads(out)["containers"]))
"""
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
    layout = site_components(site, lambda _line: None).image("busybox").layout
    found = Upstream(program, tmp_path_factory.mktemp("upstream"), f"{SUBNET}.1", 5990)
    found.start()
    try:
        for number in range(1, 6):
            found.push(layout, "probe/one", str(number))
        found.push(layout, "probe/two", "1")
        yield found
    finally:
        found.stop()


@pytest.fixture(scope="module")
def cached(cluster: Cluster, upstream: Upstream) -> Iterator[Cluster]:
    """The cluster with a cache that is open to everyone; without it again afterwards."""
    config, services = cluster.site / "config.yaml", cluster.site / "services-configuration.yaml"
    before = {path: path.read_text() if path.exists() else None for path in (config, services)}
    docker = {name: cluster.on(name, DOCKER) for name in MACHINES}
    config.write_text((before[config] or "") + SETTINGS.format(url=upstream.url))
    services.write_text((before[services] or "") + SERVICES.format(url=upstream.url))
    try:
        report = cluster.apply()
        assert report["ok"], report["stderr"]
        assert docker == {name: cluster.on(name, DOCKER) for name in MACHINES}
        yield cluster
    finally:
        for path, text in before.items():
            path.unlink(missing_ok=True) if text is None else path.write_text(text)
        report = cluster.apply()
    assert report["ok"], report["stderr"]
    left = cluster.on(MASTER, "ls /etc/containerd/certs.d /etc/docker/certs.d 2>/dev/null; docker info")
    assert "upstream.example.com" not in left
    assert "30500" not in left
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
    assert cached.plan()["phases"] == []


def test_pulls_survive_the_upstream_and_the_pod(cached: Cluster, upstream: Upstream) -> None:
    for image in (IMAGES[0], OTHER):
        pull(cached, LOST, image)
    upstream.stop()
    try:
        for image in (IMAGES[0], OTHER):
            pull(cached, "lab-worker1", image)
        cached.kubectl(*NAMESPACE, "delete", "pod", "--all", "--wait=true")
        cached.kubectl(*NAMESPACE, "rollout", "status", "deployment/docker-cache", "--timeout=180s")
        for image in (IMAGES[0], OTHER):
            pull(cached, MASTER, image)
    finally:
        upstream.start()


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
    return {name: cluster.on(name, STARTED) for name in MACHINES}


@pytest.fixture(scope="module")
def closed(cached: Cluster) -> Cluster:
    """The cache asks for a login."""
    config = cached.site / "config.yaml"
    config.write_text(config.read_text() + f"docker_cache_htpasswd: {base64.b64encode(USERS.encode()).decode()}\n")
    report = cached.apply()
    assert report["ok"], report["stderr"]
    return cached


def test_only_who_has_a_login_is_answered(closed: Cluster) -> None:
    user = base64.b64encode(f"cache-user:{USER_PASSWORD}".encode()).decode()
    stranger = base64.b64encode(b"cache-user:wrong").decode()
    assert [answer(closed, f"Basic {word}") for word in (user, stranger)] == ["200", "401"]
    pull(closed, LOST, IMAGES[2])


def test_credentials_rotate_while_containers_run(closed: Cluster, pods: dict[str, str]) -> None:
    assert pods
    before, old = started(closed), login(closed)
    assert answer(closed, old) == "200"
    done = registry(closed, "rotate", "--credentials", "--yes", "--image", IMAGES[0])
    assert done.returncode == 0, done.stdout + done.stderr
    assert started(closed) == before
    assert (answer(closed, old), answer(closed, login(closed))) == ("401", "200")
    assert closed.plan()["phases"] == []


def test_ca_rotates_around_a_machine_that_is_off(closed: Cluster, pods: dict[str, str]) -> None:
    assert pods
    before = started(closed)
    fault(closed.site, LOST, "power-off")
    try:
        done = registry(closed, "rotate", "--ca", "--yes")
        assert done.returncode == 5, done.stdout + done.stderr
        assert f"{LOST}: without the new yet" in done.stderr
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
    assert closed.plan()["phases"] == []


def test_no_secret_is_in_what_runs_left_behind(closed: Cluster) -> None:
    identity = json.loads((closed.site / ".pai" / "registry.json").read_text())
    secrets = [identity["logins"][-1]["password"], login(closed).split()[1], USERS.split(":")[1].strip()]
    secrets += [
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
