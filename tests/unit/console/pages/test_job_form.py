"""The form of a new job -> its file."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pai_install.console.pages.job_form import MOST_ROLES, JobForm, RoleForm
from tests.unit.jobs.sites import research

FORM = {
    "name": "bert",
    "cluster": "research",
    "retries": "2",
    "r0.name": "worker",
    "r0.image": "example.com/train:1",
    "r0.instances": "2",
    "r0.sku": "a100",
    "r0.gpus": "4",
    "r0.command": "set -e\n\npython train.py --name 'a: b'\n",
}


def file_of(form: dict[str, str]) -> Any:
    return yaml.safe_load(JobForm.read(form).text(research()))


def test_a_form_is_a_file_of_protocol_2() -> None:
    assert file_of(FORM) == {
        "protocolVersion": 2,
        "name": "bert",
        "type": "job",
        "jobRetryCount": 2,
        "prerequisites": [{"name": "image", "type": "dockerimage", "uri": "example.com/train:1"}],
        "taskRoles": {
            "worker": {
                "instances": 2,
                "dockerImage": "image",
                "resourcePerInstance": {"cpu": 43, "memoryMB": 460800, "gpu": 4},
                "commands": ["set -e", "python train.py --name 'a: b'"],
            }
        },
        "defaults": {"virtualCluster": "research"},
        "extras": {"hivedScheduler": {"taskRoles": {"worker": {"skuType": "a100"}}}},
    }


@pytest.mark.parametrize(
    ("changes", "resources"),
    [
        ({"r0.cpu": "8", "r0.memory": "16"}, {"cpu": 8, "memoryMB": 16384, "gpu": 4}),
        ({"r0.sku": "epyc", "r0.gpus": ""}, {"cpu": 1, "memoryMB": 8192}),
        ({"r0.sku": "", "r0.gpus": "1"}, {"cpu": 10, "memoryMB": 115200, "gpu": 1}),
        ({"r0.sku": "", "r0.gpus": ""}, {"cpu": 1, "memoryMB": 8192}),
        ({"r0.sku": "nothing", "r0.gpus": "1"}, {"cpu": 10, "memoryMB": 115200, "gpu": 1}),
        ({"r0.gpus": "many"}, {"cpu": 10, "memoryMB": 115200, "gpu": "many"}),
        ({"r0.cpu": "-1", "r0.memory": "1e9"}, {"cpu": "-1", "memoryMB": "1e9", "gpu": 4}),
    ],
)
def test_what_is_not_typed_is_the_share_of_the_sku(changes: dict[str, str], resources: dict[str, Any]) -> None:
    assert file_of({**FORM, **changes})["taskRoles"]["worker"]["resourcePerInstance"] == resources


def test_roles_share_images_and_storages_are_named() -> None:
    second = {f"r1.{key.partition('.')[2]}": value for key, value in FORM.items() if key.startswith("r0.")}
    found = file_of({**FORM, **second, "r1.name": "ps", "storage.team": "yes", "group": "nlp", "priority": "prod"})
    assert len(found["prerequisites"]) == 1
    assert set(found["taskRoles"]) == {"worker", "ps"}
    assert found["extras"]["storages"] == [{"name": "team"}]
    assert found["extras"]["pai-install"] == {"group": "nlp"}
    assert found["defaults"]["priorityClass"] == "prod"


def test_roles_come_and_go() -> None:
    form = JobForm.read(FORM)
    for _ in range(MOST_ROLES + 2):
        form = form.with_role()
    assert len(form.roles) == MOST_ROLES
    assert form.roles[1].image == "example.com/train:1"
    assert form.without_role("0").roles[0].name == "role2"
    assert JobForm().without_role("0").roles == (RoleForm(),)
    assert JobForm().without_role("x").roles == (RoleForm(),)
    assert JobForm.read({}).roles == (RoleForm(),)


@given(st.dictionaries(st.sampled_from([*FORM, "r1.name", "r1.cpu", "storage.x", "group"]), st.text(max_size=40)))
def test_any_text_stays_one_value(form: dict[str, str]) -> None:
    """Nothing that is typed becomes another key of the file."""
    found = file_of(form)
    assert set(found) <= {
        *("protocolVersion", "name", "type", "jobRetryCount", "prerequisites", "taskRoles", "defaults", "extras"),
    }
    assert found["name"] == form.get("name", "").strip()


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("name", "name"),
        ("jobRetryCount", "retries"),
        ("defaults.virtualCluster", "cluster"),
        ("taskRoles", "r0.name"),
        ("taskRoles.worker", "r0.name"),
        ("taskRoles.worker.instances", "r0.instances"),
        ("taskRoles.ps.resourcePerInstance", "r1.gpus"),
        ("taskRoles.ps.resourcePerInstance.memoryMB", "r1.memory"),
        ("taskRoles.workers.instances", ""),
        ("extras.hivedScheduler.taskRoles.ps.skuType", "r1.sku"),
        ("prerequisites[0].uri", "r0.image"),
        ("prerequisites[1]", "r1.image"),
        ("prerequisites[7].uri", ""),
        ("extras.storages[0].name", ""),
        ("", ""),
    ],
)
def test_a_place_in_the_file_has_its_field(path: str, field: str) -> None:
    form = JobForm.read({**FORM, "r1.name": "ps", "r1.image": "other"})
    assert form.field_of(path) == field
