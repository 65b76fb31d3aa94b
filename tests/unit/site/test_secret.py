"""Secrets from the file, the environment, other files and vaults; what cannot be had says so when asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.parsing.vault import VaultLib, VaultSecret
from pydantic import SecretStr

from pai_install.errors import ExitCode
from pai_install.site import load_site
from pai_install.site.load import LoadedSite
from pai_install.site.secret import MissingSecret, resolve_secret
from tests.errors import raises
from tests.unit.site.sites import LAYOUT, write_site

PLANTED = "pl4nted-s3cret"


def with_password(directory: Path, written: str) -> LoadedSite:
    return load_site(write_site(directory, config=f"user: admin\npassword: {written}\n"))


def value_of(loaded: LoadedSite) -> str:
    password = loaded.site.settings.password
    assert password is not None
    assert loaded.site.machines[0].ssh.password == password
    return password.get_secret_value()


def codes(loaded: LoadedSite) -> list[str]:
    return [problem.code for problem in loaded.problems]


def test_plain_text_works_with_a_warning(tmp_path: Path) -> None:
    loaded = with_password(tmp_path, PLANTED)
    assert value_of(loaded) == PLANTED
    assert codes(loaded) == ["site.plain-secret"]


@pytest.mark.parametrize("written", ["123456", "0123", "true", "1.50", "'with # and: '"])
def test_a_password_is_taken_as_written(tmp_path: Path, written: str) -> None:
    assert value_of(with_password(tmp_path, written)) == written.strip("'")


def test_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_PASSWORD", PLANTED)
    loaded = with_password(tmp_path, "{env: SOME_PASSWORD}")
    assert (value_of(loaded), codes(loaded)) == (PLANTED, [])


def test_from_a_file_beside_the_site(tmp_path: Path) -> None:
    (tmp_path / "pw").write_text(PLANTED + "\n")
    (tmp_path / "pw").chmod(0o600)
    loaded = with_password(tmp_path, "{file: pw}")
    assert (value_of(loaded), codes(loaded)) == (PLANTED, [])


def test_a_file_that_others_can_read_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "pw").write_text(PLANTED)
    (tmp_path / "pw").chmod(0o644)
    assert codes(with_password(tmp_path, "{file: pw}")) == ["site.secret-mode"]


def sealed(password: str) -> str:
    text = VaultLib([("default", VaultSecret(password.encode()))]).encrypt(PLANTED).decode()
    return "!vault |\n" + "".join(f"  {line}\n" for line in text.splitlines())


def test_a_vault_is_opened_with_the_password_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vault-pw").write_text("open sesame\n")
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", str(tmp_path / "vault-pw"))
    loaded = with_password(tmp_path, sealed("open sesame"))
    assert (value_of(loaded), codes(loaded)) == (PLANTED, [])


@pytest.mark.parametrize(
    ("written", "remedy"),
    [
        ("{env: PAI_TEST_NO_SUCH_VARIABLE}", "export it"),
        ("{env: 'a=b'}", "export it"),
        ("{file: nowhere}", "write the secret into it"),
        ("{file: .}", "into a file"),
        ("{file: ~nobody-there/x}", "write the secret into it"),
        (sealed("another"), "ANSIBLE_VAULT_PASSWORD_FILE"),
    ],
)
def test_what_cannot_be_had_is_a_warning_now_and_an_error_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, remedy: str
) -> None:
    monkeypatch.delenv("ANSIBLE_VAULT_PASSWORD_FILE", raising=False)
    loaded = with_password(tmp_path, written)
    assert codes(loaded) == ["site.secret-missing"]
    with raises("secret-unreadable") as caught:
        value_of(loaded)
    assert remedy in caught.value.remedy
    assert caught.value.exit_code is ExitCode.SITE_INVALID


@pytest.mark.parametrize("content", ["wrong", None])
def test_a_vault_that_does_not_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None) -> None:
    if content is not None:
        (tmp_path / "vault-pw").write_text(content)
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", str(tmp_path / "vault-pw"))
    assert codes(with_password(tmp_path, sealed("right"))) == ["site.secret-missing"]


@pytest.mark.parametrize("value", [None, [], {}, {"env": "A", "file": "b"}, {"vault": "x"}, {"env": ""}, {"env": 1}])
def test_what_is_no_secret(tmp_path: Path, value: object) -> None:
    with pytest.raises(ValueError, match="write text"):
        resolve_secret(value, tmp_path)


def test_secrets_of_services_can_be_resolved_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", PLANTED)
    assert resolve_secret({"env": "SOME_KEY"}, tmp_path) == SecretStr(PLANTED)
    assert resolve_secret("plain", tmp_path) == SecretStr("plain")
    assert isinstance(resolve_secret("$ANSIBLE_VAULT;1.1;AES256\n00", tmp_path), MissingSecret)


def test_a_machine_may_have_a_password_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWN", "own")
    layout = LAYOUT + "    ssh: {password-from: {env: OWN}}\n"
    first, second = load_site(write_site(tmp_path, layout=layout)).site.machines
    assert first.ssh.password is None
    assert second.ssh.password == SecretStr("own")


def test_secrets_are_in_no_dump(tmp_path: Path) -> None:
    loaded = with_password(tmp_path, PLANTED)
    assert PLANTED not in repr(loaded)
    assert PLANTED not in loaded.site.model_dump_json()
    assert PLANTED not in str(loaded.problems)
