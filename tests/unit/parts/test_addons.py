"""Add-ons: what their folders say, and the objects that come of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from pai_install.parts.addon import When
from pai_install.parts.registry import ADDONS, addon_parts
from pai_install.site import Site
from tests.addons import ROOT, addon_action, as_yaml, pairs, rendered
from tests.unit.plan.conftest import CONFIG, LAYOUT

ACTION = addon_action()
UPSTREAM = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, namespace: b}
spec:
  replicas: 1
  template:
    spec:
      containers:
        - {name: main, image: upstream, args: [--one]}
        - {name: side, image: other}
---
apiVersion: v1
kind: Service
metadata: {name: a, namespace: b}
"""


@pytest.mark.parametrize(("given", "expected"), list(pairs()), ids=lambda path: f"{path.parents[1].name}-{path.stem}")
def test_objects_are_as_expected(given: Path, expected: Path) -> None:
    assert as_yaml(rendered(given)) == expected.read_text(), "python -m tests.addons writes them anew"


@pytest.mark.parametrize("addon", ADDONS, ids=lambda part: part.addon)
class TestAddon:
    """One add-on."""

    def test_has_a_pair(self, addon: Any) -> None:
        assert [given for given, expected in pairs() if given.parents[1].name == addon.addon and expected.is_file()]

    def test_gives_every_value_that_its_templates_use(self, addon: Any) -> None:
        definition = addon.definition
        compiled = addon.compiled.names if addon.compiled else frozenset()
        names = {*definition.images, *definition.settings, *definition.flags, *compiled}
        texts = [path.read_text() for path in (ROOT / "addons" / addon.addon).glob("*/*.yaml.j2")]
        used = {name for text in texts for name in re.findall(r"\{\{ (\w+)", text)} - {"file"}
        loops = [loop for text in texts for loop in re.findall(r"\{% (?:for|set) ([\w, ]+?)(?: in| =| %)", text)]
        assert used - {name for loop in loops for name in loop.split(", ")} <= names

    def test_pods_ask_for_resources(self, addon: Any) -> None:
        for given, _expected in pairs():
            for entry in rendered(given) if given.parents[1].name == addon.addon else ():
                for container in entry.get("spec", {}).get("template", {}).get("spec", {}).get("containers", ()):
                    assert container["resources"]["requests"], container["name"]


def write(folder: Path, **files: str) -> Path:
    """An add-on of the test's own."""
    for name, text in files.items():
        path = folder / "mine" / name.replace("__", "/").replace("_yaml", ".yaml").replace("_j2", ".j2")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "mine"


def config_map(value: str) -> str:
    """A template of one ConfigMap."""
    return f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a, namespace: b}}, data: {{x: {value}}}}}"


@pytest.mark.parametrize(
    "value",
    ["plain", "a: b", '"', "'", "{{ 7 * 7 }}", "{% raw %}", "}, kind: Secret", "line\nline", "\u2028", "#", "yes", ""],
)
def test_value_becomes_nothing_but_itself(tmp_path: Path, value: str) -> None:
    folder = write(tmp_path, objects__a_yaml_j2=config_map("{{ x }}"))
    (entry,) = ACTION.objects_of(folder, {"x": value})
    assert entry["data"] == {"x": value}
    assert entry["kind"] == "ConfigMap"


def test_a_text_can_be_named_by_its_digest(tmp_path: Path) -> None:
    template = "{% set x %}a: {{ y }}{% endset %}" + config_map("{{ x | to_digest }}")
    texts = [ACTION.objects_of(write(tmp_path, objects__a_yaml_j2=template), {"y": y})[0]["data"]["x"] for y in "112"]
    assert texts[0] == texts[1] != texts[2]
    assert re.fullmatch("[0-9a-f]{16}", texts[0])


def test_compiled_objects_come_before_those_of_templates(tmp_path: Path) -> None:
    compiled = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "{{ b }}"}}
    found = ACTION.objects_of(write(tmp_path, objects__a_yaml_j2=config_map("1")), {"objects": [compiled]})
    assert [entry["metadata"]["name"] for entry in found] == ["{{ b }}", "a"]


def test_every_object_is_marked_with_its_add_on(tmp_path: Path) -> None:
    folder = write(tmp_path, objects__a_yaml_j2=config_map("1"))
    (entry,) = ACTION.objects_of(folder, {})
    assert entry["metadata"]["labels"] == {
        "app.kubernetes.io/managed-by": "pai-install",
        "pai-install/addon": "mine",
    }


def test_patch_changes_what_it_names_and_keeps_the_rest(tmp_path: Path) -> None:
    patch = """
{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: b}, spec: {replicas: null, template: {spec:
  {containers: [{name: main, image: {{ image }}, args: [--two]}]}}}}
"""
    folder = write(tmp_path, patches__a_yaml_j2=patch)
    deployment, service = ACTION.objects_of(folder, {"image": "mine:1"}, [UPSTREAM])
    assert deployment["spec"] == {
        "template": {
            "spec": {
                "containers": [
                    {"name": "main", "image": "mine:1", "args": ["--two"]},
                    {"name": "side", "image": "other"},
                ]
            }
        }
    }
    assert service["kind"] == "Service"


def test_patch_can_take_an_object_away(tmp_path: Path) -> None:
    patch = "{$patch: delete, apiVersion: v1, kind: Service, metadata: {name: a, namespace: b}}"
    folder = write(tmp_path, patches__a_yaml_j2=patch)
    assert [entry["kind"] for entry in ACTION.objects_of(folder, {}, [UPSTREAM])] == ["Deployment"]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"objects__a_yaml_j2": config_map("{{ gone }}")}, "gone"),
        ({"objects__a_yaml_j2": "{{ 1 +"}, "a.yaml.j2 of add-on mine"),
        ({"objects__a_yaml_j2": "a: ["}, "a.yaml.j2"),
        ({"objects__a_yaml_j2": "just: this"}, "not a Kubernetes object"),
        ({"patches__a_yaml_j2": config_map("1")}, "a patch is for ConfigMap b/a"),
        ({"objects__a_yaml_j2": config_map("{{ ''.__class__.__mro__ }}")}, "unsafe"),
    ],
)
def test_add_on_that_cannot_be_rendered_is_named(tmp_path: Path, files: dict[str, str], message: str) -> None:
    with pytest.raises(ACTION.AddonError, match=re.escape(message)):
        ACTION.objects_of(write(tmp_path, **files), {}, [UPSTREAM])


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ({}, True),
        ({"device": "nvidia.com/"}, True),
        ({"device": "amd.com/"}, False),
        ({"setting": "nvidia_device_plugin"}, True),
        ({"setting": "kernel_parameters"}, False),
        ({"setting": "flannel_backend", "equals": "vxlan"}, True),
        ({"setting": "flannel_backend", "equals": "host-gw"}, False),
        ({"setting": "nvidia_device_plugin", "device": "amd.com/"}, False),
        ({"section": "virtual-clusters"}, False),
    ],
)
def test_condition(site: Site, condition: dict[str, str], *, holds: bool) -> None:
    assert When.model_validate(condition).holds(site) is holds


def test_ports_of_pods_are_open_on_every_machine(make_site: Callable[..., Site]) -> None:
    flannel = next(part for part in ADDONS if part.addon == "flannel")
    site = make_site()
    assert all(flannel.listens(site, machine) for machine in site.present_machines)
    assert [str(port) for port in flannel.ports(site, site.machines[1])] == ["8472/udp"]
    assert flannel.kernel_modules(site) == ("vxlan",)
    host_gw = make_site(LAYOUT, CONFIG + "flannel_backend: host-gw\n")
    assert flannel.ports(host_gw, host_gw.machines[0]) == ()
    assert flannel.kernel_modules(host_gw) == ()


def test_add_ons_come_after_those_they_name(tmp_path: Path) -> None:
    for name, after in (("a", ["c"]), ("b", []), ("c", ["b"])):
        (tmp_path / name).mkdir()
        (tmp_path / name / "addon.yml").write_text(yaml.safe_dump({"summary": name, "after": after}))
    assert [part.addon for part in addon_parts(tmp_path)] == ["b", "c", "a"]
    (tmp_path / "b" / "addon.yml").write_text(yaml.safe_dump({"summary": "b", "after": ["a"]}))
    with pytest.raises(ValueError, match="wait for each other"):
        addon_parts(tmp_path)
