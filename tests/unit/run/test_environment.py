"""The product's parts fit together, without fetching anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pai_install.components.model import ComponentSet, ImageArtifact
from pai_install.engine.runner import RunnerEngine
from pai_install.engine.shards import ShardedEngine
from pai_install.errors import PaiError
from pai_install.plan.model import Inventory
from pai_install.registry.identity import Identity, at_port
from pai_install.run import environment
from pai_install.run.environment import ProductEnvironment
from pai_install.run.state import open_state, state_of
from pai_install.site.load import load_site
from tests.errors import raises
from tests.unit.cli.stub_environment import write_site


@pytest.fixture
def site(tmp_path: Path) -> Any:
    return load_site(write_site(tmp_path / "site")).site


def test_engine_is_ansible_with_the_files_of_the_site(tmp_path: Path) -> None:
    from datetime import UTC, datetime  # noqa: PLC0415

    state = open_state(tmp_path)
    run = state.new_run(datetime(2026, 3, 1, tzinfo=UTC))
    with ProductEnvironment().engine(state, run, accept_new=True) as sharded:
        assert isinstance(sharded, ShardedEngine)
        engine = sharded._engine
        assert isinstance(engine, RunnerEngine)
        assert engine._known_hosts == state.known_hosts
        assert engine._log == run.log
        assert engine._accept_new
        assert state.work.is_dir()
        assert not run.finished, "its folder must outlive whatever begins meanwhile"
    assert run.finished


def test_observation_before_components_asks_what_the_parts_want_to_know(site: Any) -> None:
    """The machines are looked at before anything is fetched: what observe.yml needs comes with the connections."""
    variables = ProductEnvironment().connections(site).shared_vars
    assert "docker.service" in variables["pai_watched_units"]
    assert "kube-system" in variables["pai_system_namespaces"]
    assert variables["control_plane_endpoint"].endswith(":7443")


def test_bundle_needs_a_file(site: Any) -> None:
    settings = site.settings.model_copy(update={"component_source": "bundle"})
    with raises("bundle-path-missing"):
        environment.site_components(site.model_copy(update={"settings": settings}), print)


def test_components_are_those_the_site_chooses(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def fetch(selection: Any, source: Any, progress: Any) -> ComponentSet:
        asked.append((selection.source, source.name, progress))
        return ComponentSet((), (), selection.kubernetes_version)

    monkeypatch.setattr("pai_install.components.fetch.fetch", fetch)
    settings = site.settings.model_copy(update={"component_source": "modules", "kubernetes_version": "1.35"})
    components = environment.site_components(site.model_copy(update={"settings": settings}), print)
    assert components.kubernetes_version.startswith("1.35.")
    assert asked == [("modules", "modules", print)]


def test_password_that_is_not_there_is_told_before_anything_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PAI_TEST_UNSET", raising=False)
    folder = write_site(tmp_path / "site")
    (folder / "config.yaml").write_text("user: admin\npassword: {env: PAI_TEST_UNSET}\n")
    monkeypatch.setattr("pai_install.components.fetch.fetch", lambda *_, **__: pytest.fail("components were fetched"))
    with raises("secret-unreadable", "PAI_TEST_UNSET"):
        ProductEnvironment().inventory(load_site(folder).site, state_of(folder), print)


def test_without_components_it_is_said_what_is_known(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(*_: Any, **__: Any) -> ComponentSet:
        raise PaiError("cannot be downloaded", details="timed out")

    monkeypatch.setattr("pai_install.components.fetch.fetch", fetch)
    with pytest.raises(PaiError) as caught:
        environment.site_components(site, print)
    assert caught.value.details.startswith("timed out\nthe site itself is valid: 1 control plane")


def test_a_site_keeps_its_identity_from_run_to_run_with_a_cache_and_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Identity] = []
    monkeypatch.setattr("pai_install.components.fetch.fetch", lambda *_, **__: ComponentSet((), (), "1.36.3"))
    monkeypatch.setattr("pai_install.parts.registry.make_context", lambda *values: given.append(values[3]))
    monkeypatch.setattr("pai_install.plan.inventory.build_inventory", lambda *_: None)
    folder = write_site(tmp_path / "cached")
    state = state_of(folder)
    ProductEnvironment().inventory(load_site(folder).site, state, print)
    assert state.registry.exists()
    cache = "enable_docker_cache: true\ndocker_cache_storage_backend: filesystem\n"
    (folder / "config.yaml").write_text((folder / "config.yaml").read_text() + cache)
    for _ in range(2):
        ProductEnvironment().inventory(load_site(folder).site, state, print)
    assert given[0].ports == ()
    assert at_port(given[0], 30500) == given[1] == given[2], "the cache brings its port, and nothing else changes"
    assert state.registry.stat().st_mode & 0o777 == 0o600


def test_pods_name_an_image_of_the_site_with_its_digest(site: Any, tmp_path: Path, monkeypatch: Any) -> None:
    held = ComponentSet((), (ImageArtifact("rsync", "stable", "sha256:00", tmp_path),), "1.36.3")
    monkeypatch.setattr(environment, "site_components", lambda _site, _notify: held)
    name = ProductEnvironment().image(site, state_of(tmp_path), "rsync", print)
    assert name == "registry.pai.internal/rsync:stable@sha256:00"


def test_machines_with_other_versions_have_other_variables_and_the_store_serves_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of an upgrade: the control plane has the new version, one worker still the old one."""
    fetched: list[str] = []
    contexts: list[ComponentSet] = []

    def fetch(selection: Any, *_: Any, **__: Any) -> ComponentSet:
        fetched.append(selection.kubernetes_version)
        image = ImageArtifact("kube-proxy", f"v{selection.kubernetes_version}", "sha256:1", tmp_path)
        return ComponentSet((), (image,), selection.kubernetes_version)

    def inventory(context: Any, _digests: Any) -> Inventory:
        contexts.append(context)
        hosts = {name: {"version": context.kubernetes_version, "pai_settings": {}} for name in ("master", "one", "two")}
        return Inventory({}, {}, hosts)

    monkeypatch.setattr("pai_install.components.fetch.fetch", fetch)
    monkeypatch.setattr("pai_install.parts.registry.make_context", lambda *values: values[1])
    monkeypatch.setattr("pai_install.plan.inventory.build_inventory", inventory)
    folder = write_site(tmp_path / "site")
    versions = {"master": {"kubernetes": "1.36.3"}, "one": {"kubernetes": "1.35.4"}, "two": {"kubernetes": "1.36.3"}}
    config = folder / "config.yaml"
    config.write_text(config.read_text() + "component_source: modules\n")
    found = ProductEnvironment().inventory(load_site(folder).site, state_of(folder), print, versions)
    assert sorted(fetched) == ["1.35.4", "1.36.3"]
    assert {host: values["version"] for host, values in found.host_vars.items()} == {
        "master": "1.36.3", "one": "1.35.4", "two": "1.36.3",
    }  # fmt: skip
    assert [image.tag for image in contexts[0].images] == ["v1.36.3", "v1.35.4"]
