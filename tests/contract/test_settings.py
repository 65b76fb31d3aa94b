"""Every setting of config.yaml says what a change of it does, or that it has no effect, or none yet."""

from __future__ import annotations

from pathlib import Path

from pydantic.fields import FieldInfo

from pai_install.site.field_metadata import Change, ChangeClass, NotYet, WithoutEffect, marker_of
from pai_install.site.settings import CHANGES, Settings

ROOT = Path(__file__).parents[2]
FIELDS = {info.alias or name: info for name, info in Settings.model_fields.items()}
UNITS = (
    {path.name for path in ROOT.rglob("roles/*/files/*.service")}
    | {path.name.removesuffix(".j2") for path in ROOT.rglob("roles/*/templates/*.service.j2")}
    | {"docker.service", "chrony.service"}
)


def markers(info: FieldInfo) -> int:
    """How many kinds of change a setting declares."""
    return sum(marker_of(info, kind) is not None for kind in (Change, NotYet, WithoutEffect))


def test_every_setting_declares_one_thing() -> None:
    """Annotate it with live(), restarts(...), new_machines() or fixed(...)."""
    assert [key for key, info in FIELDS.items() if markers(info) != 1] == []


def test_a_setting_that_restarts_names_its_units_and_no_other_does() -> None:
    assert [key for key, it in CHANGES.items() if bool(it.units) != (it.kind is ChangeClass.RESTARTS)] == []
    assert {key: it.units for key, it in CHANGES.items() if not set(it.units) <= UNITS} == {}


def test_a_fixed_setting_names_the_alternative() -> None:
    assert [key for key, it in CHANGES.items() if it.kind is ChangeClass.FIXED and not it.note] == []


def test_what_a_cluster_is_built_on_cannot_change() -> None:
    fixed = {key for key, change in CHANGES.items() if change.kind is ChangeClass.FIXED}
    assert {"pod_cidr", "service_cidr", "pod_cidr_node_prefix", "kubernetes_version"} <= fixed
