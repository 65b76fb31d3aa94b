"""The playbooks are found, and a role's digest changes with any of its files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pai_install.engine.content import part_digests, role_digests
from pai_install.system.content import content_dir


def test_content_of_the_checkout_is_found() -> None:
    content = content_dir()
    assert (content / "ansible.cfg").is_file()
    assert (content / "playbooks").is_dir()


@pytest.fixture
def roles(tmp_path: Path) -> Path:
    (tmp_path / "roles" / "base" / "tasks").mkdir(parents=True)
    (tmp_path / "roles" / "base" / "tasks" / "main.yml").write_text("[]\n")
    (tmp_path / "roles" / "other").mkdir()
    (tmp_path / "roles" / "README.md").write_text("not a role\n")
    return tmp_path


def test_digest_stays_while_the_role_stays(roles: Path) -> None:
    before = role_digests(roles)
    (roles / "roles" / "base" / "tasks" / "main.cpython-311.pyc").write_bytes(b"cache")
    (roles / "roles" / "base" / "README.md").write_text("what it does\n")
    (roles / "roles" / "base" / "molecule" / "default").mkdir(parents=True)
    (roles / "roles" / "base" / "molecule" / "default" / "converge.yml").write_text("[]\n")
    assert role_digests(roles) == before
    assert sorted(before) == ["base", "other"]


@pytest.mark.parametrize("change", ["content", "rename", "add"])
def test_digest_changes_with_content_and_with_names(roles: Path, change: str) -> None:
    before = role_digests(roles)
    tasks = roles / "roles" / "base" / "tasks"
    match change:
        case "content":
            (tasks / "main.yml").write_text("[ ]\n")
        case "rename":
            (tasks / "main.yml").rename(tasks / "main.yaml")
        case _:
            (tasks / "more.yml").write_text("")
    after = role_digests(roles)
    assert after["base"] != before["base"]
    assert after["other"] == before["other"]


def test_part_has_the_digest_of_its_role_and_an_add_on_of_its_folder_too(tmp_path: Path) -> None:
    content = tmp_path / "content"
    for name in ("playbooks", "roles", "addons"):
        shutil.copytree(content_dir() / name, content / name)
    before = part_digests(content)
    assert before["base"] == role_digests(content)["base"]
    template = next((content / "addons" / "flannel" / "objects").iterdir())
    template.write_text(template.read_text() + "# changed\n")
    (content / "addons" / "flannel" / "tests" / "new.input.yml").write_text("values: {}\n")
    after = part_digests(content)
    assert {name for name in before if before[name] != after[name]} == {"addon.flannel"}
    shared = content / "addons" / "shared" / "deployment.yaml.j2"
    shared.write_text(shared.read_text() + "# changed\n")
    last = part_digests(content)
    changed = {name for name in before if last[name] != after[name]}
    assert changed == {f"addon.{name}" for name in ("jobset", "kueue", "training_operator", "volcano")}
