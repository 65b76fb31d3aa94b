"""What the cache and the machines know each other by, and that a rotation never locks anyone out."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pai_install.registry.identity import (
    Identity,
    Serving,
    at_port,
    make_identity,
    open_identity,
    read_identity,
    renewed,
    save,
    serve_from,
    with_new_authority,
    with_new_login,
    with_old_port,
    without_old_authorities,
    without_other_logins,
    without_other_ports,
)
from pai_install.registry.model import ServedNames
from tests.errors import raises

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
PORT = 30500
NAMES = ServedNames(("docker-cache.pai.internal", "10.0.0.1"), ("registry.pai.internal", "10.0.0.1", "127.0.0.1"), PORT)
FIRST = make_identity(NAMES, NOW)
SERVER, CLIENT = x509.oid.ExtendedKeyUsageOID.SERVER_AUTH, x509.oid.ExtendedKeyUsageOID.CLIENT_AUTH


def signed_by(identity: Identity, certificate: str) -> None:
    """Raises where a serving certificate is not signed by that authority."""
    authority = x509.load_pem_x509_certificate(certificate.encode())
    for serving in (identity.cache, identity.store):
        x509.load_pem_x509_certificate(serving.certificate.encode()).verify_directly_issued_by(authority)


def names_of(serving: Serving) -> tuple[str, ...]:
    """Those in the certificate."""
    certificate = x509.load_pem_x509_certificate(serving.certificate.encode())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return (*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress)))


def uses_of(serving: Serving | None) -> set[x509.ObjectIdentifier]:
    """What its certificate is for."""
    assert serving is not None
    certificate = x509.load_pem_x509_certificate(serving.certificate.encode())
    return set(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)


def test_the_first_one_serves_its_names_from_its_own_authority() -> None:
    assert (names_of(FIRST.cache), names_of(FIRST.store)) == (NAMES.cache, NAMES.store)
    assert FIRST.cache.key != FIRST.store.key
    signed_by(FIRST, FIRST.bundle)
    assert FIRST.login.generation == 1


def test_a_file_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / ".pai" / "registry.json"
    made = open_identity(path, NAMES, NOW)
    assert open_identity(path, NAMES, NOW) == made
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_another_name_or_a_near_end_renews_the_certificate_alone(tmp_path: Path) -> None:
    path = tmp_path / ".pai" / "registry.json"
    made = open_identity(path, NAMES, NOW)
    other = replace(NAMES, cache=("docker-cache.pai.internal", "10.0.0.9"))
    moved = open_identity(path, other, NOW)
    assert moved.cache.certificate != made.cache.certificate
    assert moved.store == made.store
    assert moved.bundle == made.bundle
    assert moved.logins == made.logins
    assert renewed(moved, other, NOW + timedelta(days=300)) == moved
    later = renewed(moved, other, NOW + timedelta(days=340))
    assert later.cache.certificate != moved.cache.certificate
    assert later.store.certificate != moved.store.certificate


def test_a_file_of_before_the_store_had_a_certificate_gets_one_and_keeps_the_rest(tmp_path: Path) -> None:
    path = tmp_path / ".pai" / "registry.json"
    made = open_identity(path, NAMES, NOW)
    content = json.loads(path.read_text())
    del content["store"]
    path.write_text(json.dumps({**content, **content.pop("cache")}))
    opened = open_identity(path, NAMES, NOW)
    assert (opened.cache, opened.authorities, opened.logins, opened.salt) == (
        made.cache, made.authorities, made.logins, made.salt,
    )  # fmt: skip
    assert names_of(opened.store) == NAMES.store
    assert opened.store.key != opened.cache.key
    signed_by(opened, opened.bundle)
    assert open_identity(path, NAMES, NOW) == opened


def test_the_scheduler_has_a_certificate_where_it_makes_none_itself() -> None:
    asked = replace(NAMES, webhook=("admission.pai-volcano.svc",))
    assert FIRST.webhook is None
    joined = renewed(FIRST, asked, NOW)
    assert joined.webhook is not None
    assert names_of(joined.webhook) == asked.webhook
    assert renewed(joined, asked, NOW) == joined
    again = renewed(joined, asked, NOW + timedelta(days=380))
    assert again.webhook not in (None, joined.webhook)
    moved = serve_from(with_new_authority(joined, NOW), 2, NOW)
    assert moved.webhook is not None
    authority = x509.load_pem_x509_certificate(moved.authorities[-1].certificate.encode())
    x509.load_pem_x509_certificate(moved.webhook.certificate.encode()).verify_directly_issued_by(authority)
    assert renewed(joined, NAMES, NOW).webhook is None


def test_members_of_the_gossip_are_servers_and_clients_also_after_a_rotation() -> None:
    made = renewed(FIRST, replace(NAMES, scraper=("prometheus",), alertmanager=("alertmanager",)), NOW)
    for identity in (made, serve_from(with_new_authority(made, NOW), 2, NOW)):
        assert (uses_of(identity.alertmanager), uses_of(identity.scraper)) == ({SERVER, CLIENT}, {CLIENT})
        assert uses_of(identity.store) == {SERVER}


def test_no_secret_is_in_its_text() -> None:
    for secret in (FIRST.cache.key, FIRST.store.key, FIRST.authorities[0].key, FIRST.login.password):
        assert secret.get_secret_value() not in repr(FIRST)


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"authorities": []}'])
def test_a_file_that_is_none_of_ours_is_told_and_kept(tmp_path: Path, content: str) -> None:
    path = tmp_path / "registry.json"
    path.write_text(content)
    with raises("registry-identity-unusable", "registry.json"):
        open_identity(path, NAMES, NOW)
    assert path.read_text() == content


def test_a_serving_authority_that_no_machine_trusts_is_refused() -> None:
    with pytest.raises(ValidationError):
        Identity.model_validate({**dict(FIRST), "serving_ca": 2})
    with pytest.raises(ValueError, match="not among the trusted"):
        serve_from(FIRST, 2, NOW)


def test_a_file_of_before_there_were_ports_is_at_the_sites(tmp_path: Path) -> None:
    path = tmp_path / "registry.json"
    old = FIRST.model_dump(mode="json", exclude={"ports", "used_port"})
    path.write_text(json.dumps(old))
    found = read_identity(path)
    assert found is not None
    assert found.ports == ()
    opened = open_identity(path, replace(NAMES, port=30600), NOW)
    assert (opened.ports, opened.used_port) == ((30600,), 30600)


def test_a_site_without_a_cache_has_no_port_and_leaves_those_that_machines_may_have() -> None:
    assert make_identity(replace(NAMES, port=0), NOW).ports == ()
    assert at_port(FIRST, 0) == FIRST


def test_another_port_of_the_site_is_used_beside_the_old_one_until_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "registry.json"
    open_identity(path, NAMES, NOW)
    moved = open_identity(path, replace(NAMES, port=30600), NOW)
    assert (moved.ports, moved.used_port) == ((PORT, 30600), 30600)
    assert with_old_port(moved).used_port == PORT
    assert at_port(with_old_port(moved), 30600).used_port == PORT, "what was taken back needs a rotation"
    back = at_port(moved, PORT)
    assert (back.ports, back.used_port) == ((30600, PORT), PORT)
    assert without_other_ports(back).ports == (PORT,)


@pytest.mark.parametrize("ports", [(30600,), (30500, 30500), ()])
def test_a_used_port_at_which_the_cache_does_not_answer_is_refused(ports: tuple[int, ...]) -> None:
    with pytest.raises(ValidationError):
        Identity.model_validate({**dict(FIRST), "ports": ports})


def test_a_saved_one_is_read_back_as_it_was(tmp_path: Path) -> None:
    rotated = with_new_login(with_new_authority(FIRST, NOW))
    save(tmp_path / "registry.json", rotated)
    assert open_identity(tmp_path / "registry.json", NAMES, NOW) == rotated


Transition = Callable[[Identity], Identity]
TRANSITIONS: dict[str, Transition] = {
    "new authority": lambda identity: with_new_authority(identity, NOW),
    "serve newest": lambda identity: serve_from(identity, identity.authorities[-1].generation, NOW),
    "drop authorities": without_old_authorities,
    "new login": with_new_login,
    "drop logins": without_other_logins,
    "renew": lambda identity: renewed(identity, replace(NAMES, store=(*NAMES.store, "other")), NOW),
}


@given(st.lists(st.sampled_from(sorted(TRANSITIONS)), max_size=8))
def test_whatever_happens_the_serving_authority_is_trusted_and_the_login_accepted(names: list[str]) -> None:
    identity = FIRST
    for name in names:
        before, identity = identity, TRANSITIONS[name](identity)
        signed_by(identity, identity.serving_authority.certificate)
        assert identity.serving_authority.certificate in identity.bundle
        assert identity.login in identity.logins
        assert identity.login.generation >= before.login.generation
        assert identity.authorities[-1].generation >= before.authorities[-1].generation


@dataclass(frozen=True)
class World:
    """What serves and two machines, each as the last run left it."""

    file: Identity
    cache: Identity
    machines: tuple[Identity, Identity]

    def works(self) -> bool:
        """Whether every machine trusts what the cache shows, and the cache accepts each machine's login."""
        return all(
            self.cache.serving_authority in machine.authorities and machine.login in self.cache.logins
            for machine in self.machines
        )


def step(world: World, name: str) -> World:
    """One step of a rotation: an edit of the file, or a machine brought to it."""
    if name == "cache":
        return replace(world, cache=world.file)
    if name == "machines":
        return replace(world, machines=(world.file, world.file))
    return replace(world, file=TRANSITIONS[name](world.file))


CREDENTIALS = ("new login", "cache", "machines", "drop logins", "cache")
AUTHORITY = ("new authority", "machines", "serve newest", "cache", "drop authorities", "machines")


@given(st.sampled_from((CREDENTIALS, AUTHORITY)), st.lists(st.integers(0, 6), max_size=3))
def test_a_rotation_that_stops_anywhere_and_begins_again_locks_no_machine_out(
    steps: tuple[str, ...], stops: list[int]
) -> None:
    world = World(FIRST, FIRST, (FIRST, FIRST))
    for length in (*stops, len(steps)):
        for name in steps[:length]:
            world = step(world, name)
            assert world.works(), name
    assert len(world.cache.logins) == 1
    assert len(world.file.authorities) == 1
