"""What the pod reads is root's alone, and nothing in a name or password becomes anything but itself."""

from __future__ import annotations

import json

from testinfra.host import Host

FOLDER = "/etc/pai-install/docker-cache"
PRIVATE = "registry.example.com:5000"
SAID = "p'a\"s s$w#o%r{1}"


def test_nobody_but_root_reads_it(host: Host) -> None:
    assert host.file(FOLDER).mode == 0o700
    for path in host.check_output(f"find {FOLDER} -type f").split():
        file = host.file(path)
        assert (file.user, file.mode) == ("root", 0o700 if "/login-" in path else 0o600), path


def test_what_is_no_longer_cached_is_gone(host: Host) -> None:
    assert host.check_output(f"find {FOLDER} -name '*gone*' -type f -o -path '*gone*' -type f") == ""


def test_haproxy_takes_the_configuration(host: Host) -> None:
    host.check_output(f"env DOCKER_CACHE={FOLDER} haproxy -c -f {FOLDER}/front.cfg")


def test_an_upstream_gets_its_own_login(host: Host) -> None:
    told = json.loads(host.check_output(f"{FOLDER}/login-{PRIVATE} get"))
    assert told == {"Username": "robot", "Secret": SAID}
    assert json.loads(host.check_output(f"{FOLDER}/login-docker.io get")) == {"Username": "", "Secret": ""}


def test_a_registry_has_its_own_folder_and_ports(host: Host) -> None:
    text = host.file(f"{FOLDER}/registry-{PRIVATE}.yml").content_string
    configuration = json.loads(text.partition("\n")[2])
    assert configuration["storage"]["filesystem"] == {"rootdirectory": f"/data/{PRIVATE}"}
    assert configuration["http"]["addr"] == "127.0.0.1:5002"
    assert SAID not in text


def test_content_is_kept_within_its_limit(host: Host) -> None:
    rule = json.loads(host.file(f"{FOLDER}/gc.json").content_string)
    assert rule == {"folder": "/var/lib/registry", "limit": 10737418240, "free_percent": 5, "keep_days": 30}
    timer = host.service("pai-docker-cache-gc.timer")
    assert timer.is_running
    assert timer.is_enabled
    host.check_output("systemctl start pai-docker-cache-gc.service")
    said = json.loads(host.file("/var/lib/pai-install/docker-cache-gc.json").content_string)
    assert (said["last"]["limit"], said["last"]["dropped"]) == (10737418240, {"count": 0, "bytes": 0})
