"""Every setting of config.yaml says what a change of it does, or that it has no effect, or none yet."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic.fields import FieldInfo

from pai_install.site.declared import Change, ChangeClass, NotYet, WithoutEffect, marker_of
from pai_install.site.settings import CHANGES, Settings

ROOT = Path(__file__).parents[2]
FIELDS = {info.alias or name: info for name, info in Settings.model_fields.items()}
UNITS = (
    {path.name for path in ROOT.rglob("roles/*/files/*.service")}
    | {path.name.removesuffix(".j2") for path in ROOT.rglob("roles/*/templates/*.service.j2")}
    | {"docker.service", "chrony.service"}
)


@pytest.mark.parametrize(("key", "info"), FIELDS.items(), ids=FIELDS)
def test_every_setting_declares_one_thing(key: str, info: FieldInfo) -> None:
    markers = [marker for kind in (Change, NotYet, WithoutEffect) if (marker := marker_of(info, kind)) is not None]
    assert len(markers) == 1, f"{key}: annotate it with live(), restarts(...), new_machines() or fixed(...)"


@pytest.mark.parametrize(("key", "change"), CHANGES.items(), ids=CHANGES)
def test_a_class_says_what_belongs_to_it(key: str, change: Change) -> None:
    assert bool(change.units) == (change.kind is ChangeClass.RESTARTS)
    assert set(change.units) <= UNITS, "a unit that no role installs or restarts"
    assert change.note or change.kind is not ChangeClass.FIXED, "say what to do instead"


def test_what_a_cluster_is_built_on_cannot_change() -> None:
    fixed = {key for key, change in CHANGES.items() if change.kind is ChangeClass.FIXED}
    assert {"pod_cidr", "service_cidr", "pod_cidr_node_prefix", "kubernetes_version"} <= fixed
