"""An inventory for everybody's eyes: no password, no login; what is left out is never taken for a value."""

from __future__ import annotations

import pytest

from pai_install.plan.literal import literal
from pai_install.plan.redacted_inventory import LEFT_OUT, without_secrets


def test_passwords_are_gone() -> None:
    assert without_secrets({"ansible_password": "x", "a": [{"ansible_become_password": "y", "b": 1}]}) == {
        "a": [{"b": 1}]
    }


def test_a_play_does_not_go_on_without_a_roles_secret() -> None:
    shown = without_secrets(literal({"docker_cache_logins": [{"name": "m", "password": "x"}], "u": [{"password": ""}]}))
    assert shown == {"docker_cache_logins": LEFT_OUT, "u": [{"password": ""}]}


@pytest.mark.parametrize("address", ["http://u:p@proxy:3128", 'http://u:"p@proxy', "a b:c@d"])
def test_login_in_an_address_is_refused_by_ansible(address: str) -> None:
    assert without_secrets(literal({"proxy": {"http": address}})) == {"proxy": {"http": LEFT_OUT}}


@pytest.mark.parametrize("value", ["registry/x:1@sha256:abc", "user@host", "-o A=b", 3, None, True])
def test_other_values_stay(value: object) -> None:
    assert without_secrets(literal([value])) == literal([value])
