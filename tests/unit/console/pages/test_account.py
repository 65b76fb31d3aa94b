"""The page of one's own account."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from pai_install.console.caller import CallerKind
from tests.unit.console.conftest import ALICE, CALLERS
from tests.unit.console.pages.test_jobs import shown


def kubeconfig_part(page: str) -> str:
    found = re.search(r'<section aria-labelledby="kubeconfig">.*?</section>', page, re.DOTALL)
    assert found is not None
    return found[0]


def test_a_user_is_told_how_to_get_a_kubeconfig(web: TestClient) -> None:
    part = kubeconfig_part(shown(web, "/account", "alice"))
    assert "Ask an administrator to run this command on the controller host" in part
    assert "pai-install user kubeconfig alice" in part
    assert "<form" not in part


def test_a_person_of_an_identity_provider_has_another_way(web: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command makes kubeconfigs of users of the cluster alone."""
    person = replace(ALICE, name="oidc:alice", label="oidc.alice", kind=CallerKind.OIDC, uid="", bearer="token")
    monkeypatch.setitem(CALLERS, "person", person)
    part = kubeconfig_part(shown(web, "/account", "person"))
    assert "tokens of your identity provider" in part
    assert "pai-install user kubeconfig" not in part
