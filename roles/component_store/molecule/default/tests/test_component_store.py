"""The store serves exactly what was put into it, to every machine."""

from __future__ import annotations

import shlex
from typing import Any

from testinfra.host import Host

STORE = "https://127.0.0.1:5080/v2"


def control_plane(host: Host) -> dict[str, Any]:
    """Variables of the site's own store."""
    found: dict[str, Any] = host.backend.ansible_runner.get_variables("control-plane")
    return found


def asked(host: Host, program: str, url: str, *words: str) -> str:
    """What a program says of an answer; it trusts the authorities of the site alone."""
    # text that Ansible must not take for a template
    known = control_plane(host)["component_store_ca"]["__ansible_unsafe"]
    given = " ".join(map(shlex.quote, (program, known, url, *words)))
    found: str = host.check_output(f"python3 -c {given}")
    return found


def test_it_listens_on_all_addresses(host: Host) -> None:
    assert host.service("pai-component-store").is_running
    assert host.service("pai-component-store").is_enabled
    address = host.ansible.get_variables()["ansible_host"]
    assert host.socket("tcp://5080").is_listening or host.socket(f"tcp://{address}:5080").is_listening


def test_a_file_has_its_digest(host: Host) -> None:
    digest = next(file["sha256"] for file in control_plane(host)["component_store_files"] if file["name"] == "runc")
    assert asked(host, FETCH, f"{STORE}/files/runc/blobs/sha256:{digest}") == digest


def test_an_image_has_its_manifest(host: Host) -> None:
    images = control_plane(host)["component_store_images"]
    image = next(image for image in images if image["repository"] == "pause")
    fetched = asked(host, FETCH, f"{STORE}/pause/manifests/{image['tag']}")
    assert f"sha256:{fetched}" == image["manifest_digest"]


def test_nobody_puts_anything_into_it(host: Host) -> None:
    for method, path in (
        ("POST", "pause/blobs/uploads/"),
        ("PUT", "pause/manifests/latest"),
        ("DELETE", "pause/manifests/latest"),
    ):
        assert asked(host, ASK, f"{STORE}/{path}", method) == "405", method


def test_it_answers_everybody_and_may_do_nothing_else(host: Host) -> None:
    pid = host.check_output("systemctl show --property MainPID --value pai-component-store")
    status = dict(line.split(":", 1) for line in host.file(f"/proc/{pid}/status").content_string.splitlines())
    assert status["Uid"].split()[0] != "0"
    assert int(status["CapEff"], 16) == 0
    assert (status["NoNewPrivs"].strip(), status["Seccomp"].strip()) == ("1", "2")


def test_uploads_cut_short_are_gone_and_no_second_registry_stays(host: Host) -> None:
    assert host.check_output("find /var/lib/pai-install/store -path '*/_uploads/*'") == ""
    assert host.check_output("pgrep --count --exact pai-registry") == "1"
    assert host.check_output("find /tmp -name 'pai-store-*'") == ""


def test_only_root_reads_its_key_and_nobody_is_served_without_tls(host: Host) -> None:
    key = host.file("/etc/pai-install/store/server.pem")
    assert (key.user, key.group, key.mode) == ("root", "root", 0o600)
    assert asked(host, ASK, STORE.replace("https:", "http:") + "/pause/tags/list", "GET") == "400"
    assert asked(host, ASK, f"{STORE}/pause/tags/list", "GET") == "200"


# what a request is answered with
ASK = """
import ssl, sys, urllib.error, urllib.request
context = ssl.create_default_context(cadata=sys.argv[1])
request = urllib.request.Request(sys.argv[2], method=sys.argv[3], data=b"{}")
try:
    print(urllib.request.urlopen(request, context=context).status)
except urllib.error.HTTPError as error:
    print(error.code)
"""
# the digest of what a URL answers
FETCH = """
import hashlib, ssl, sys, urllib.request
context = ssl.create_default_context(cadata=sys.argv[1])
accept = {"Accept": "application/vnd.oci.image.manifest.v1+json, */*"}
answer = urllib.request.urlopen(urllib.request.Request(sys.argv[2], headers=accept), context=context)
print(hashlib.sha256(answer.read()).hexdigest())
"""
