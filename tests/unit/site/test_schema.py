"""JSON Schemas agree with what is accepted, and the starter site with the models."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from ruamel.yaml import YAML

from pai_install.cli.main import run
from pai_install.json_schema import schema_of
from pai_install.site import load_site
from pai_install.site.schema import NAMES, schema
from pai_install.site.settings import NO_EFFECT, Settings
from pai_install.site.validation import ValidationReport
from pai_install.site_edit.starter import STARTER_LAYOUT, STARTER_SERVICES, starter_config
from tests.unit.site.sites import LAYOUT
from tests.unit.site.test_services import GENERATED

REPOSITORY = Path(__file__).parents[3]
EXAMPLES = sorted(path for path in REPOSITORY.glob("layouts/*/*.yaml") if path.stem in NAMES)


def yaml(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


@pytest.mark.parametrize("name", NAMES)
def test_schemas_are_schemas(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(name))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_example_fits(path: Path) -> None:
    jsonschema.validate(yaml(path.read_text()), schema(path.stem), cls=jsonschema.Draft202012Validator)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("count: 4", "count: 0"),
        ("mem: 220Gi", "mem: [1]"),
        ("hostname: w1", "hostname: W_1"),
        ("machine-type: gpu", "machine-typ: gpu"),
        ('pai-worker: "true"', "pai-worker: maybe"),
    ],
)
def test_what_is_wrong_does_not_fit(old: str, new: str) -> None:
    jsonschema.validate(yaml(LAYOUT), schema("layout"))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(yaml(LAYOUT.replace(old, new)), schema("layout"))


SCHEDULED = """\
scheduler: {type: kueue, topology: [{name: rack, label: rack}]}
virtual-clusters:
  - name: a
    groups: [b]
    quota: [{sku: c, machines: 1, lend: 4, borrow: none}, {sku: d, cores: '8', memory: 4Gi, lend: all}]
    pinned: [e]
    priorities: {usual: test}
  - {name: f, quota: }
"""


@pytest.mark.parametrize(
    "text",
    [
        GENERATED,
        "pylon:\n",
        "docker-cache: {enabled: yes, service_nodeport: '30500'}",
        "storages: []\nhealth: {}",
        SCHEDULED,
        "x: 1",
    ],
)
def test_services_fit_as_leniently_as_they_are_read(text: str) -> None:
    jsonschema.validate(yaml(text), schema("services-configuration"), cls=jsonschema.Draft202012Validator)


@pytest.mark.parametrize(
    "text",
    [
        "pylon: 1",
        "docker-cache: []",
        "authentication: {group-manager: {grouplist: x}}",
        "prometheus: {port: {}}",
        "storages: text",
        "scheduler: {type: slurm}",
        "virtual-clusters: [{name: a, quota: [{sku: b, lend: some}]}]",
    ],
)
def test_services_of_the_wrong_shape_do_not_fit(text: str) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(yaml(text), schema("services-configuration"))


def test_every_setting_is_described() -> None:
    properties = schema("config")["properties"]
    assert [key for key, value in properties.items() if not value.get("description")] == []
    assert {key for key, value in properties.items() if value.get("deprecated")} == set(NO_EFFECT)


def test_the_report_of_validate_fits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for directory in (REPOSITORY / "layouts" / "ha", tmp_path):
        run(["validate", "--site", str(directory), "--format", "json"])
        jsonschema.validate(json.loads(capsys.readouterr().out), schema_of(ValidationReport))


def test_the_verb_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", "layout"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "layout.yaml"
    assert run(["schema", "nothing"]) == 2


def test_init_writes_a_valid_site_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", "--site", str(tmp_path / "new")]) == 0
    assert load_site(tmp_path / "new").problems == ()
    (tmp_path / "new" / "layout.yaml").write_text("mine")
    assert run(["init", "--site", str(tmp_path / "new")]) == 2
    assert str(tmp_path / "new" / "layout.yaml") in capsys.readouterr().err
    assert (tmp_path / "new" / "layout.yaml").read_text() == "mine"


def test_init_of_an_impossible_folder_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    for folder in ("/proc/foo", str(tmp_path / "file")):
        assert run(["init", "--site", folder]) == 2
        assert folder in capsys.readouterr().err


def test_the_starter_shows_every_setting() -> None:
    shown = {line.removeprefix("# ").partition(":")[0] for line in starter_config().splitlines()}
    assert {info.alias or name for name, info in Settings.model_fields.items()} - set(NO_EFFECT) <= shown


def test_the_defaults_in_the_starter_are_the_defaults() -> None:
    names = {info.alias or name for name, info in Settings.model_fields.items()}
    lines = [line.removeprefix("# ") for line in starter_config().splitlines()]
    written = yaml("\n".join(line for line in lines if line.partition(":")[0] in names))
    given = {key: value for key, value in written.items() if value is not None}
    plain = Settings(user="admin")
    for key, value in Settings.model_validate(given).model_dump(by_alias=True).items():
        if key not in {"user", "ssh_key_file_path"}:
            assert value == plain.model_dump(by_alias=True)[key]


def test_the_starter_is_a_valid_site_also_with_all_that_it_proposes(tmp_path: Path) -> None:
    proposed = [re.sub(r"^# (?=[a-z ])", "", line) for line in STARTER_SERVICES.splitlines()]
    for number, services in enumerate((STARTER_SERVICES, "\n".join(proposed))):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "layout.yaml").write_text(STARTER_LAYOUT)
        (folder / "config.yaml").write_text(starter_config())
        (folder / "services-configuration.yaml").write_text(services)
        read = load_site(folder)
        assert read.site.services.scheduler is not None
        assert read.site.services.scheduler.type == "kueue"
        assert [str(problem) for problem in read.problems] == []
    assert read.site.services.given == ("authentication", "storages", "scheduler", "virtual-clusters", "jobs")
