"""Which files a role runs with, on a small tree and on the real one."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from pai_install.engine.content import part_digests, role_digests
from pai_install.engine.uses import files_of_role, read_plugins
from pai_install.system.content import content_dir

TREE = {
    "roles/a/tasks/main.yml": "- name: Write pai_b\n  pai_a:\n    x: '{{ y | shout }}'\n",
    "roles/a/README.md": "uses pai_b",
    "roles/a/molecule/default/prepare.yml": "- pai_b:\n",
    "roles/b/tasks/main.yml": "- block:\n    - pai_b: {}\n",
    "roles/b/templates/x.j2": "{{ y|whisper }} {{ shout }}",
    "playbooks/library/pai_a.py": "from ansible.module_utils.pai_one import f\n",
    "playbooks/action_plugins/pai_a.py": "from ansible.plugins.action import ActionBase\n",
    "playbooks/library/pai_b.py": "from ansible.module_utils import (\n    pai_three as three,\n    basic,\n)\n",
    "playbooks/filter_plugins/loud.py": 'x = {\n    "whisper": 1}\nclass FilterModule:\n  d = {\n    "shout": f}\n',
    "playbooks/filter_plugins/quiet.py": 'class FilterModule:\n    d = {\n        "whisper": f,\n    }\n',
    "playbooks/module_utils/pai_one.py": "from ansible.module_utils.pai_two import g\n",
    "playbooks/module_utils/pai_two.py": "from ansible.module_utils.pai_one import f\n",
    "playbooks/module_utils/pai_three.py": "",
}


def shared(role: str, files: Mapping[str, str] = TREE) -> set[str]:
    """Names of what a role uses of playbooks/."""
    return {
        path.removeprefix("playbooks/")
        for path in files_of_role(role, files, read_plugins(files))
        if path.startswith("playbooks/")
    }


def test_role_runs_with_what_its_tasks_use_and_with_what_that_imports() -> None:
    assert shared("a") == {
        "library/pai_a.py",
        "action_plugins/pai_a.py",
        "filter_plugins/loud.py",
        "module_utils/pai_one.py",
        "module_utils/pai_two.py",
    }
    assert shared("b") == {"library/pai_b.py", "module_utils/pai_three.py", "filter_plugins/quiet.py"}


def test_roles_own_files_count_but_its_pages_and_scenarios() -> None:
    assert {path for path in files_of_role("a", TREE, read_plugins(TREE)) if path.startswith("roles/")} == {
        "roles/a/tasks/main.yml"
    }


def real_tree() -> dict[str, str]:
    """The checkout's."""
    content = content_dir()
    folders = ("roles", "playbooks")
    paths = [
        path for folder in folders for path in (content / folder).rglob("*") if path.suffix in (".py", ".yml", ".j2")
    ]
    return {path.relative_to(content).as_posix(): path.read_text() for path in paths}


@pytest.fixture(scope="module")
def tree() -> dict[str, str]:
    return real_tree()


def test_labels_of_nodes_run_with_two_modules(tree: dict[str, str]) -> None:
    used = shared("node_labels", tree)
    assert {name for name in used if name.startswith("library/")} == {
        "library/pai_node_labels.py",
        "library/pai_state.py",
    }


def test_probes_of_preflight_belong_to_no_role(tree: dict[str, str]) -> None:
    roles = {path.split("/")[1] for path in tree if path.startswith("roles/")}
    used = {name for role in roles for name in shared(role, tree)}
    assert not {name for name in used if "pai_probe" in name or "pai_preflight" in name}


def test_every_plugin_is_used_by_a_role_or_a_playbook(tree: dict[str, str]) -> None:
    plugins = read_plugins(tree)
    playbooks = "".join(text for path, text in tree.items() if path.startswith("playbooks/") and path.endswith(".yml"))
    named = {file for name, files in plugins.modules.items() if f" {name}:" in playbooks for file in files}
    roles = {path.split("/")[1] for path in tree if path.startswith("roles/")}
    used = plugins.with_imports(named).union(*(files_of_role(role, tree, plugins) for role in roles))
    assert {path for path in tree if path.startswith("playbooks/") and path.endswith(".py")} <= used


@pytest.mark.parametrize(
    ("file", "roles", "parts"),
    [
        (
            "common/api.py",
            {"job_recorder", "gpu_use", "group_network"},
            {"job_recorder", "gpu_use", "group_network", "addon.hived"},
        ),
        ("gpu_use/smi.py", {"gpu_use"}, {"gpu_use"}),
        ("hived_bridge/servers.py", set(), {"addon.hived"}),
    ],
)
def test_agent_changes_the_role_or_add_on_that_installs_it(
    tmp_path: Path, file: str, roles: set[str], parts: set[str]
) -> None:
    agents = "installer/pai_install/agents"
    for name in ("playbooks", "roles", "addons", agents):
        shutil.copytree(content_dir() / name, tmp_path / name)
    before = role_digests(tmp_path), part_digests(tmp_path)
    with (tmp_path / agents / file).open("a") as handle:
        handle.write("# changed\n")
    after = role_digests(tmp_path), part_digests(tmp_path)
    assert [{name for name in old if old[name] != new[name]} for old, new in zip(before, after, strict=True)] == [
        roles,
        parts,
    ]


@pytest.fixture
def copied(tree: dict[str, str], tmp_path: Path) -> Path:
    """The real tree, to be changed."""
    for name, text in tree.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def changed(content: Path, name: str) -> set[str]:
    """Roles that another version of a file gives another digest."""
    before = role_digests(content)
    with (content / name).open("a") as file:
        file.write("\n# fixed\n")
    after = role_digests(content)
    return {role for role in after if after[role] != before[role]}


def test_fix_in_a_probe_changes_no_role(copied: Path) -> None:
    assert changed(copied, "playbooks/module_utils/pai_probe_machine.py") == set()
    assert changed(copied, "playbooks/library/pai_preflight.py") == set()


def test_fix_in_what_records_changes_the_roles_that_record(copied: Path) -> None:
    roles = {path.name for path in (copied / "roles").iterdir()}
    assert changed(copied, "playbooks/module_utils/pai_managed.py") == roles


def test_fix_in_a_module_changes_the_roles_that_use_it(copied: Path) -> None:
    assert changed(copied, "playbooks/library/pai_kernel.py") == {"base"}
    assert changed(copied, "playbooks/library/pai_service.py") == {
        *("container_runtime", "component_store", "storage_server", "nvidia_driver"),
    }


def test_fix_in_an_action_changes_the_roles_that_use_it(copied: Path) -> None:
    assert changed(copied, "playbooks/action_plugins/pai_store.py") == {"component_store"}
