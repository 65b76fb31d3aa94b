"""Objects of Kueue and Volcano against the schemas of their own releases, where Go's module cache has those."""

from __future__ import annotations

import os
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml

from pai_install.schedulers.compile import objects_of
from tests.virtual_clusters import CASES, with_backend

MODULES = Path(os.environ.get("GOMODCACHE") or Path.home() / "go" / "pkg" / "mod")
FOLDERS = {
    "kueue": MODULES / "sigs.k8s.io" / "kueue@v0.18.3" / "config" / "components" / "crd" / "bases",
    "volcano": MODULES
    / "volcano.sh"
    / "volcano@v1.14.1"
    / "installer"
    / "helm"
    / "chart"
    / "volcano"
    / "crd"
    / "bases",
}


# the kinds that are made; the others' schemas are long
PLURALS = (
    "topologies",
    "resourceflavors",
    "workloadpriorityclasses",
    "cohorts",
    "clusterqueues",
    "localqueues",
    "queues",
)
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@cache
def schemas(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """API version and kind -> schema, in which an unknown key is an error."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for path in (it for plural in PLURALS for it in folder.glob(f"*_{plural}.yaml")):
        spec = yaml.load(path.read_text(), LOADER)["spec"]  # noqa: S506 - a safe loader, written in C
        for version in spec["versions"]:
            schema = version["schema"]["openAPIV3Schema"]
            found[f"{spec['group']}/{version['name']}", spec["names"]["kind"]] = closed(schema, top=True)
    return found


def closed(schema: dict[str, Any], *, top: bool = False) -> dict[str, Any]:
    """The schema without room for other keys; below metadata anything may stand."""
    known = {key: closed(value) for key, value in schema.get("properties", {}).items()}
    items = {"items": closed(schema["items"])} if "items" in schema else {}
    shut = {"properties": known, "additionalProperties": False} if known else {}
    if top:
        known["metadata"] = {"type": "object"}
    return {**schema, **items, **shut}


@pytest.mark.parametrize(("case", "backend"), list(product(CASES, FOLDERS)))
def test_objects_are_what_the_release_takes(case: str, backend: Any) -> None:
    known = schemas(FOLDERS[backend])
    if not known:
        pytest.skip(f"no schemas of {backend} in Go's module cache")
    checked = 0
    for it in objects_of(with_backend(CASES[case](), backend)):
        schema = known.get((it["apiVersion"], it["kind"]))
        if schema is not None:
            jsonschema.validate(it, schema)
            checked += 1
    assert checked


def test_a_key_that_the_release_does_not_know_is_found() -> None:
    known = schemas(FOLDERS["kueue"])
    if not known:
        pytest.skip("no schemas of kueue in Go's module cache")
    queue = next(it for it in objects_of(CASES["two_teams"]()) if it["kind"] == "ClusterQueue")
    odd = {**queue, "spec": {**queue["spec"], "cohort": "pai"}}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(odd, known[odd["apiVersion"], odd["kind"]])
