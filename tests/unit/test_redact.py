"""Secrets are found by their names and masked in every form in which they may be written."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pai_install.redact import MASK, Redactor, secret_values

KEY = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nshort\n-----END KEY-----\n"


@pytest.mark.parametrize(
    "name",
    [
        "password", "ansible_password", "ansible_become_password", "docker_registry_password", "token",
        "join-token", "kubeadm_token", "secret", "azure_account_key_secret", "private_key", "encryptionKey", "api_key",
        "registry_pass", "auth_data", "Passphrase", "htpasswd",
    ],
)  # fmt: skip
def test_names_of_secrets(name: str) -> None:
    assert secret_values({"a": [{name: "hunter22"}]}) == {"hunter22"}
    assert secret_values({name: {"deep": ["hunter22"]}}) == {"hunter22"}


@pytest.mark.parametrize(
    "name",
    ["user", "hostip", "key_file", "ansible_ssh_private_key_file", "token_ttl", "secret_name", "password-from",
     "passenger", "bypass_proxy", "secrets_path"],
)  # fmt: skip
def test_names_of_other_things(name: str) -> None:
    assert secret_values({name: "value"}) == frozenset()


def test_values_that_are_no_text_are_no_secrets() -> None:
    assert secret_values({"password": True, "token": 3, "secret": None, "api_key": ""}) == frozenset()


@pytest.mark.parametrize("secret", ["hunter22", 'with "quotes"', "back\\slash", "ünïcode-wörd", "sp ace {{x}}"])
def test_every_written_form_is_masked(secret: str) -> None:
    redactor = Redactor([secret])
    for form in (
        secret,
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        base64.b64encode(secret.encode()).decode(),
    ):
        assert redactor.text(f"x={form};") == f"x={MASK};"


def test_lines_of_a_key_are_masked_one_by_one() -> None:
    text = Redactor([KEY]).text("got MIIEvQIBADANBgkqhkiG9w0BAQEFAASC and short and -----BEGIN KEY-----")
    assert text == f"got {MASK} and short and -----BEGIN KEY-----"


def test_short_secret_is_masked_as_a_word_only() -> None:
    assert Redactor(["lab"]).text("lab collaborate label lab.") == f"{MASK} collaborate label {MASK}."


def test_longer_secret_wins() -> None:
    assert Redactor(["abcd", "abcdefgh"]).text("abcdefgh abcd") == f"{MASK} {MASK}"


def test_without_secrets_nothing_is_touched() -> None:
    for redactor in (Redactor([]), Redactor(["", "  ", "\n"])):
        assert redactor.text("some  text") == "some  text"
        assert redactor.mapping({"a": [1, None, "x"]}) == {"a": [1, None, "x"]}


def test_nested_data_is_masked_with_its_keys() -> None:
    data = {"hunter22": {"list": ["a hunter22", 5, ("hunter22",)]}, "n": None, 3: True}
    assert Redactor(["hunter22"]).mapping(data) == {  # type: ignore[arg-type]
        MASK: {"list": [f"a {MASK}", 5, [MASK]]},
        "n": None,
        "3": True,
    }


@given(st.text(min_size=4), st.text(), st.text())
def test_no_secret_of_some_length_survives(secret: str, before: str, after: str) -> None:
    assume(secret.strip() and "*" not in secret)
    assert secret not in Redactor([secret]).text(before + secret + after)


def test_more_values_make_another_one_only_where_there_are_more() -> None:
    redactor = Redactor(["hunter22"])
    assert redactor.also([]) is redactor
    assert redactor.also(["hunter22"]) is redactor
    more = redactor.also(["swordfish"])
    assert more.text("hunter22 swordfish") == f"{MASK} {MASK}"
    assert redactor.text("hunter22 swordfish") == f"{MASK} swordfish"
