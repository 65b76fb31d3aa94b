"""Known causes are recognised in the words that tools really use, and in nothing else."""

from __future__ import annotations

import re

import pytest

from pai_install.report.causes import cause_of, known_causes

UNREACHABLE = {
    "host-key-changed": "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.",
    "host-key-unknown": "No ED25519 host key is known for 10.0.0.2 and you have requested strict checking.\n"
    "Host key verification failed.",
    "ssh-refused": "ssh: connect to host 10.0.0.2 port 22: Connection refused",
    "ssh-login": "admin@10.0.0.2: Permission denied (publickey,password).",
    "ssh-missing": "Unable to execute ssh command line on a controller: [Errno 2] No such file or directory: b'ssh'",
    "ssh-name": "ssh: Could not resolve hostname node-1: Name or service not known",
    "machine-silent": "ssh: connect to host 10.0.0.2 port 22: Connection timed out",
}
FAILED = {
    "task-timeout": "Task failed: Timed out after 180 second(s).",
    "sudo-password": "Incorrect sudo password",
    "sudo-timeout": "Timeout (12s) waiting for privilege escalation prompt: ",
    "python-missing": "/bin/sh: 1: /usr/bin/python3: not found",
    "package-lock": "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 812 (unattended-upgr)",
    "package-broken": "E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem.",
    "package-unknown": "No package matching 'chronyy' is available",
    "no-space": "OSError: [Errno 28] No space left on device: '/var/lib/x'",
    "read-only": "touch: cannot touch '/etc/x': Read-only file system",
    "clock-off": "E: Release file for http://deb.example/InRelease is not valid yet (invalid for another 3h)",
    "port-taken": "[ERROR Port-10250]: Port 10250 is in use",
    "registry-limit": "toomanyrequests: You have reached your pull rate limit.",
    "proxy": 'Get "https://registry": proxyconnect tcp: dial tcp 10.0.0.9:3128: connect: connection refused',
    "another-registry": "image registry/pause@sha256:a8 cannot be pulled: ctr: failed commit on ref "
    '"manifest-sha256:a8": unexpected commit digest sha256:0f, expected sha256:a8: failed precondition',
    "image-pull": 'failed to pull and unpack image "registry/pause:3.10": not found',
    "checksum": "The checksum for /tmp/x did not match abc; it was def.",
    "kubelet": "[kubelet-check] The kubelet is not running\nerror execution phase wait-control-plane",
    "swap-on": "[ERROR Swap]: running with swap on is not supported. Please disable swap",
    "join-token": "could not find a JWS signature in the cluster-info ConfigMap for token ID 'abcdef'",
    "etcd": "etcdserver: request timed out",
    "api-unreachable": "The connection to the server 10.0.0.1:6443 was refused - did you specify the right host?",
    "kernel-module": "modprobe: FATAL: Module br_netfilter not found in directory /lib/modules/6.1.0-13-amd64",
    "name-resolution": "Temporary failure resolving 'deb.debian.org'",
    "certificate-untrusted": "tls: failed to verify certificate: x509: certificate signed by unknown authority",
    "service-start": "Unable to restart service docker: Job for docker.service failed",
    "memory": "fork: Cannot allocate memory",
    "ended": "Module result deserialization failed: No start of json char found\nKilled",
    "network-timeout": "net/http: TLS handshake timeout",
}


@pytest.mark.parametrize(("cause", "text"), UNREACHABLE.items())
def test_unreachable_machine(cause: str, text: str) -> None:
    found = cause_of(text, unreachable=True)
    assert found is not None
    assert found.id == cause


@pytest.mark.parametrize(("cause", "text"), FAILED.items())
def test_failed_step(cause: str, text: str) -> None:
    found = cause_of(f"non-zero return code\n{text}")
    assert found is not None
    assert found.id == cause


def test_every_cause_has_an_example_a_sentence_and_a_remedy() -> None:
    causes = known_causes()
    assert {cause.id for cause in causes} == {*UNREACHABLE, *FAILED}
    assert len({cause.id for cause in causes}) == len(causes)
    for cause in causes:
        assert re.fullmatch(r"[A-Z].*\.", cause.cause), cause.id
        assert re.fullmatch(r"[A-Z].*\.", cause.remedy), cause.id


@pytest.mark.parametrize("text", ["", "non-zero return code", "the field 'x' is required", "assertion failed"])
def test_unknown_words_get_no_cause(text: str) -> None:
    assert cause_of(text) is None


def test_machine_that_cannot_be_reached_always_gets_a_remedy() -> None:
    found = cause_of("some new words of ssh", unreachable=True)
    assert found is not None
    assert "ssh" in found.remedy


def test_refused_connection_of_a_step_is_not_taken_for_ssh() -> None:
    found = cause_of("Get http://10.0.0.1/: Connection refused")
    assert found is None or not found.id.startswith("ssh")
