"""Role variables: the Python model, argument_specs and defaults say the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from pai_install.parts.addon import AddonPart
from pai_install.parts.part import Part, RoleVariables
from pai_install.parts.registry import PARTS, ROLE_MODELS
from tests.molecule.test_roles import ROLES as SCENARIOS

# one makes nothing, one keeps a record of each add-on, one takes all records away
KEEPS_NO_RECORD_OF_ITS_OWN = {"cluster_verify", "cluster_addons", "machine_reset"}
ROLES = Path(__file__).parents[2] / "roles"


def read(role: str, path: str) -> Any:
    """A YAML file of a role."""
    return yaml.safe_load((ROLES / role / path).read_text())


def options(role: str) -> dict[str, dict[str, Any]]:
    """The role's options."""
    found: dict[str, dict[str, Any]] = read(role, "meta/argument_specs.yml")["argument_specs"]["main"]["options"]
    return found


# modules that can write the record beside their own work
RECORDERS = ("pai_images", "pai_pod_network")


def units_of(task: dict[str, Any]) -> list[dict[str, Any]]:
    """The units that a task names. A template instead of a list has units of ours alone."""
    found = [task.get(name, {}).get("units", []) for name in ("pai_service", "pai_state")]
    return [unit for units in found if isinstance(units, list) for unit in units]


def test_every_role_has_a_model() -> None:
    assert {path.name for path in ROLES.iterdir()} == {model.role for model in ROLE_MODELS}


def test_every_role_has_a_scenario() -> None:
    assert set(SCENARIOS) == {model.role for model in ROLE_MODELS}


@pytest.mark.parametrize("model", ROLE_MODELS, ids=lambda model: model.role)
class TestRole:
    """One role."""

    def test_defaults_and_argument_specs_name_the_same_variables(self, model: type[RoleVariables]) -> None:
        assert set(read(model.role, "defaults/main.yml")) == set(options(model.role))

    def test_variables_have_the_roles_name_in_front(self, model: type[RoleVariables]) -> None:
        assert all(name.startswith(f"{model.role}_") for name in options(model.role))

    def test_the_model_gives_only_declared_variables(self, model: type[RoleVariables]) -> None:
        given = {f"{model.role}_{name}" for name, info in model.model_fields.items() if not info.exclude}
        assert given <= set(options(model.role))

    def test_the_model_gives_every_required_variable(self, model: type[RoleVariables]) -> None:
        required = {name for name, option in options(model.role).items() if option.get("required")}
        assert required <= {f"{model.role}_{name}" for name in model.model_fields}

    def test_every_option_is_described(self, model: type[RoleVariables]) -> None:
        assert all(option.get("description") and option.get("type") for option in options(model.role).values())

    def test_the_role_includes_no_other_role(self, model: type[RoleVariables]) -> None:
        """Its digest covers its own files and the plugins it uses, not those of another role."""
        assert not read(model.role, "meta/main.yml").get("dependencies")
        texts = [path.read_text() for path in (ROLES / model.role / "tasks").glob("*.yml")]
        assert not [text for text in texts if "include_role" in text or "import_role" in text]

    def test_the_role_keeps_its_record(self, model: type[RoleVariables]) -> None:
        tasks = read(model.role, "tasks/main.yml")
        own = [task["pai_state"].get("role", model.role) for task in tasks if "pai_state" in task]
        records = own + [role for task in tasks for name in RECORDERS if (role := (task.get(name) or {}).get("role"))]
        assert records == ([] if model.role in KEEPS_NO_RECORD_OF_ITS_OWN else [model.role])

    def test_paths_of_managed_files_stand_once(self, model: type[RoleVariables]) -> None:
        """A unit restarts for its files of pai_state or `paths` of pai_files. Only programs of others are named."""
        for path in sorted((ROLES / model.role / "tasks").glob("*.yml")):
            for task in yaml.safe_load(path.read_text()):
                for unit in units_of(task):
                    named = re.findall(r"/[\w/.-]+", str(unit.get("restart_if_newer", "")))
                    assert all(name.startswith("/usr/local/bin/") for name in named), f"{path}: {named}"

    def test_the_scenario_begins_on_a_dirty_machine_and_has_tests_of_its_own(self, model: type[RoleVariables]) -> None:
        scenario = ROLES / model.role / "molecule" / "default"
        assert (scenario / "molecule.yml").is_file()
        plays = yaml.safe_load((scenario / "prepare.yml").read_text())
        assert [play for play in plays if play.get("hosts") and play.get("tasks")]
        assert (scenario / "tests" / f"test_{model.role}.py").is_file()

    def test_installing_packages_restarts_nothing_that_is_not_ours(self, model: type[RoleVariables]) -> None:
        """needrestart, which Ubuntu brings, restarts whatever uses a replaced library, unasked."""
        for path in (ROLES / model.role / "tasks").glob("*.yml"):
            for task in yaml.safe_load(path.read_text()):
                if "name" in task.get("ansible.builtin.apt", {}):
                    assert task.get("environment") == {"NEEDRESTART_SUSPEND": "1"}, f"{path}: {task['name']}"

    def test_secrets_are_not_logged(self, model: type[RoleVariables]) -> None:
        for path in sorted((ROLES / model.role / "tasks").glob("*.yml")):
            for task in yaml.safe_load(path.read_text()):
                if "pai_join_token" in task or "admin.conf" in str(task.get("ansible.builtin.slurp", "")):
                    assert task["no_log"] is True


@pytest.mark.parametrize(
    "part", [part for part in PARTS if not isinstance(part, AddonPart)], ids=lambda part: part.name
)
def test_a_part_names_the_units_that_its_role_restarts_and_stops(part: Part) -> None:
    """Beside its own, which no machine has before, and such as come with a package of the role's."""
    tasks = [task for path in (ROLES / part.role / "tasks").glob("*.yml") for task in yaml.safe_load(path.read_text())]
    services = [task[name] for task in tasks for name in ("pai_service", "pai_state") if name in task]
    units = {unit["name"] for task in tasks for unit in units_of(task)}
    stopped = {name for service in services if isinstance(service.get("stopped"), list) for name in service["stopped"]}
    assert set(part.restarts) == {name for name in units if not name.startswith("pai-")}
    assert set(part.stops) == stopped
