"""Operations on registries: who is asked, and what a stage of a rotation leaves alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from pai_install.errors import ExitCode
from pai_install.operations.registry_inspect import RegistryGc, RegistryStatus, RegistryTest, RegistryWarm, upstreams
from pai_install.operations.registry_rotate import RegistryRotate, behind
from pai_install.operations.registry_upstream import RegistryUpstream
from pai_install.plan.model import HostStep, Inventory, Plan, Playbook, Step
from pai_install.plan.observation import Observation
from pai_install.site import Site
from tests.errors import raises
from tests.unit.registry.test_compile import site_of
from tests.unit.site.sites import CONFIG

NOTHING = Observation(Inventory({}, {}, {}), {})
MIRRORED = "registry:\n  upstreams:\n    - {name: docker.io, mirror: 'https://harbor.example.com'}\n"


@pytest.fixture
def cached(tmp_path: Path) -> Site:
    return site_of(tmp_path, services="registry:\n  upstreams: [{name: quay.io}]\n")


def test_every_machine_asks_every_registry_that_is_cached(cached: Site) -> None:
    (step,) = RegistryTest(images=("quay.io/a/b:1",)).plan(cached, NOTHING).steps
    assert step.names == tuple(machine.hostname for machine in cached.present_machines)
    assert step.action == Playbook(
        "registry-test.yml", {"registry_upstreams": ["docker.io", "quay.io"], "registry_images": ["quay.io/a/b:1"]}
    )
    assert step.looks


def test_a_rotation_asks_the_clusters_own_cache_alone(tmp_path: Path) -> None:
    mirrored = "registry:\n  upstreams:\n    - {name: quay.io, mirror: 'https://harbor.example.com'}\n"
    site = site_of(tmp_path, services=mirrored)
    assert (upstreams(site), upstreams(site, cached=True)) == (("docker.io", "quay.io"), ("docker.io",))


def test_a_limit_names_machines_of_the_site(cached: Site) -> None:
    master = cached.control_planes[0].hostname
    (step,) = RegistryTest(limit=(master,)).plan(cached, NOTHING).steps
    assert step.names == (master,)
    with raises("limit-unknown-machine"):
        RegistryTest(limit=("none",)).require(cached)


def test_the_cache_is_filled_and_asked_where_it_is(cached: Site) -> None:
    master = cached.control_planes[0].hostname
    for operation in (RegistryWarm(images=("busybox",)), RegistryStatus(), RegistryGc()):
        (step,) = operation.plan(cached, NOTHING).steps
        assert step.names == (master,)


@pytest.mark.parametrize("image", ["", "-x", "UPPER/../a", "a b", "a\nb", "a@sha256:12", "$(id)", "a" * 300])
def test_what_is_no_image_is_refused(image: str) -> None:
    with pytest.raises(ValidationError, match="is no image"):
        RegistryWarm(images=(image,))


def test_a_site_without_registries_is_told(tmp_path: Path) -> None:
    site = site_of(tmp_path, CONFIG)
    for operation in (RegistryTest(), RegistryWarm(images=("busybox",)), RegistryStatus(), RegistryGc()):
        with raises("registry-not-configured") as caught:
            operation.require(site)
        assert caught.value.exit_code == ExitCode.USAGE


def test_mirrors_can_be_asked_and_have_no_status_of_ours(tmp_path: Path) -> None:
    site = site_of(tmp_path, CONFIG, MIRRORED)
    assert upstreams(site) == ("docker.io",)
    RegistryTest().require(site)
    for operation in (RegistryStatus(), RegistryGc()):
        with raises("registry-cache-missing-mirrors-only"):
            operation.require(site)


def test_azure_keeps_its_content_itself(tmp_path: Path) -> None:
    azure = (
        "enable_docker_cache: true\ndocker_cache_azure_account_name: acc\ndocker_cache_azure_account_key: aGVsbG8=\n"
    )
    with raises("registry-azure-without-usage") as caught:
        RegistryGc().require(site_of(tmp_path, CONFIG + azure))
    assert caught.value.exit_code == ExitCode.USAGE


def test_a_login_is_rotated_only_where_there_is_one(cached: Site, tmp_path: Path) -> None:
    for subject in ("ca", "endpoint", "backend"):
        RegistryRotate(subject=subject).require(cached)
    with raises("registry-cache-without-login"):
        RegistryRotate(subject="credentials").require(cached)
    other = site_of(tmp_path / "other", CONFIG)
    with raises("registry-cache-missing"):
        RegistryRotate(subject="credentials").require(other)
    RegistryRotate(subject="ca").require(other)


def test_the_proof_of_another_authority_asks_the_store_as_well(cached: Site, tmp_path: Path) -> None:
    other = site_of(tmp_path / "other", CONFIG)
    for site, names in (
        (cached, ["registry.pai.internal", "docker.io", "quay.io"]),
        (other, ["registry.pai.internal"]),
    ):
        test = RegistryTest(cached=True, store=True)
        test.require(site)
        action = test.plan(site, NOTHING).steps[0].action
        assert isinstance(action, Playbook)
        assert action.variables["registry_upstreams"] == names


def test_an_upstream_is_asked_from_where_the_cache_is_and_a_mirror_from_everywhere(tmp_path: Path) -> None:
    site = site_of(tmp_path, services=MIRRORED + "    - {name: quay.io}\n")
    hosts = {
        name: RegistryUpstream(upstream=name).plan(site, NOTHING).steps[0].names for name in ("quay.io", "docker.io")
    }
    assert hosts == {"quay.io": ("m1",), "docker.io": ("m1", "w1")}
    restore = RegistryUpstream(upstream="quay.io", does="restore").plan(site, NOTHING)
    assert not restore.steps[0].looks


def test_an_upstream_that_no_cache_serves_is_a_wrong_argument(cached: Site, tmp_path: Path) -> None:
    with raises("registry-upstream-unknown", "nvcr.io") as caught:
        RegistryUpstream(upstream="nvcr.io").require(cached)
    assert (caught.value.exit_code, caught.value.remedy) == (ExitCode.USAGE, "choose one of docker.io, quay.io")
    with raises("registry-upstream-unknown"):
        RegistryUpstream(upstream="quay.io").require(site_of(tmp_path / "other", CONFIG))


def test_one_registry_can_be_asked_alone(cached: Site) -> None:
    (step,) = RegistryTest(upstream="quay.io").plan(cached, NOTHING).steps
    assert isinstance(step.action, Playbook)
    assert step.action.variables["registry_upstreams"] == ["quay.io"]


def step(name: str, *hosts: str) -> Step:
    return Step(name, name, tuple(HostStep(host, ("changed",)) for host in hosts), Playbook(f"{name}.yml"))


def test_who_is_behind_differs_or_did_not_answer() -> None:
    steps = (step("base", "zero"), step("runtime", "four"), step("registries", "two", "one"))
    plan = Plan(steps, NOTHING.inventory, {"three": "no route"})
    assert behind(plan, "credentials") == ("one", "three", "two")
    assert behind(plan, "ca") == ("four", "one", "three", "two")
    assert behind(replace(plan, steps=(), unreachable={}), "ca") == ()


def test_a_stage_touches_its_own_phases_alone(cached: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = tuple(step(name, "one") for name in ("base", "runtime", "addons", "registries"))
    made = Plan(steps, NOTHING.inventory)
    monkeypatch.setattr("pai_install.operations.registry_rotate.make_plan", lambda *_words, **_more: made)
    planned = RegistryRotate(subject="ca", phases=("registries",)).plan(cached, NOTHING)
    assert [one.name for one in planned.steps] == ["registries"]
