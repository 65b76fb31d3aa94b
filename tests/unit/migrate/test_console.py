"""What OpenPAI's sections for its API and pages become in a migrated site."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_install.documents.reader import read_document
from pai_install.migrate.console import console_text
from pai_install.site.services import Services, read_services

THEIRS = """\
rest-server: {jwt-expire-time: 2d, rate-limit-api-per-min: 7}
pylon: {domain: pai.example.org, uri: "https://10.0.0.1:8443", ssl: {port: 8443}, deploy-service: false}
"""


def services_of(folder: Path, text: str) -> Services:
    path = folder / "services-configuration.yaml"
    path.write_text(text)
    return read_services(read_document(path))


def test_keys_get_the_names_of_our_section(tmp_path: Path) -> None:
    found = services_of(tmp_path, THEIRS + console_text(services_of(tmp_path, THEIRS))).console
    assert found is not None
    assert found.given == ("names", "port", "sign-in", "rates", "legacy-ports")
    assert (found.names, found.port, found.legacy_ports) == (("pai.example.org",), 8443, True)
    assert (found.sign_in.session_hours, found.rates.api_per_min) == (48, 7)


@pytest.mark.parametrize("text", ["scheduler: {type: kueue}\n", f"{THEIRS}console: false\n", "pylon: {port: 80}\n"])
def test_nothing_is_written_without_a_choice_or_beside_a_section(tmp_path: Path, text: str) -> None:
    assert console_text(services_of(tmp_path, text)) == ""


@pytest.mark.parametrize("named", [False, True])
def test_a_certificate_of_this_host_is_taken_over(tmp_path: Path, named: bool) -> None:
    certificate, key = tmp_path / "pai.crt", tmp_path / "pai.key"
    certificate.write_text("certificate")
    names = f"crt_name: pai.crt, crt_path: {tmp_path}, key_name: pai.key, key_path: {tmp_path}"
    text = f"pylon: {{ssl: {{{names if named else f'crt_path: {certificate}, key_path: {key}'}}}}}\n"
    assert "\n  # certificate: " in console_text(services_of(tmp_path, text)), "half of it"
    key.write_text("key")
    made = console_text(services_of(tmp_path, text))
    assert f"\n  certificate: {certificate}\n" in made
    assert f"\n  key: {{file: {key}}}\n" in made
