"""No secret leaves the controller host: those that the site knows, and what looks like one."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_install.redact import MASK
from pai_install.run.support.masks import Masks

SECRET = "planted-Secret-7f3a"


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("Authorization: Bearer abcdef0123456789", "Authorization: Bearer " + MASK),
        ("kubeadm join --token abcdef.0123456789abcdef x", "kubeadm join --token " + MASK + " x"),
        ("GET https://me:hunter2@registry/v2/", "GET https://me:" + MASK + "@registry/v2/"),
        ('{"password": "hunter2hunter2"}', '{"password": "' + MASK + '"}'),
        ("PASSWORD=hunter22", "PASSWORD=" + MASK),
        ("client-key-data: aGVsbG8gd29ybGQ=", "client-key-data: " + MASK),
        ("eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0abc.sig-nature", MASK),
    ],
)
def test_what_looks_like_a_secret_is_masked(line: str, left: str) -> None:
    assert Masks(()).text(line) == left


def test_a_private_key_is_masked_whole_also_when_it_is_cut() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nAAAA\n-----END RSA PRIVATE KEY-----\nafter"
    assert Masks(()).text(key).splitlines() == [
        "-----BEGIN RSA PRIVATE KEY-----" + MASK + "-----END RSA PRIVATE KEY-----",
        "after",
    ]
    assert "MIIEow" not in Masks(()).text(key[:50])


@pytest.mark.parametrize(
    "line",
    [
        "secret: null",
        "token: {}",
        "tokens are fine",
        "kubelet v1.36.3 at 10.0.0.1:10250",
        "https://a:5080/v2/",
        "sha256:abcdef",
    ],
)
def test_what_is_none_stays(line: str) -> None:
    assert Masks(()).text(line) == line


@given(st.text(st.characters(codec="ascii"), max_size=60), st.text(st.characters(codec="ascii"), max_size=60))
def test_known_secrets_never_stay(before: str, after: str) -> None:
    masks = Masks([{"config": {"password": SECRET}}])
    encoded = base64.b64encode(SECRET.encode()).decode()
    found = masks.text(f"{before}{SECRET}{after} {encoded}")
    assert SECRET not in found
    assert encoded not in found
