"""Looking at the machines: facts of those that answer, a reason for each that does not."""

from __future__ import annotations

from typing import Any

import pytest

from pai_install.errors import PaiError
from pai_install.redact import Redactor
from pai_install.run.actions import Stage
from pai_install.run.observe import observe

FACTS = {"ansible_facts": {"pai": {"hostname": "one", "note": "hunter22-planted"}}}


def test_facts_and_reasons(kit: Any) -> None:
    events = kit.done(
        kit.event("ok", "one", **FACTS),
        kit.event("unreachable", "two", msg="timed out"),
        kit.event("ok", "master", other=1),
        dark=["two"],
    )
    engine, listener = kit.engine({"observe.yml": events}), kit.listener()
    stage = Stage(engine, (listener,), Redactor([kit.secret]))
    seen = observe(kit.plan().inventory, ("master", "one", "two"), stage)
    assert seen.results == {"one": FACTS}, "the planner needs the facts as they are"
    assert seen.missed == {"master": "the machine returned no facts", "two": "timed out"}
    assert seen.phase.name == "observe"
    assert kit.secret not in repr(listener.notices), "what is shown and written is masked"
    (request,) = engine.requests
    assert (request.playbook, request.limit, request.check) == ("observe.yml", ("master", "one", "two"), False)


def test_ctrl_c_and_a_broken_engine_are_raised(kit: Any) -> None:
    inventory = kit.plan().inventory
    with pytest.raises(KeyboardInterrupt):
        observe(inventory, ("one",), Stage(kit.engine({"observe.yml": [KeyboardInterrupt()]})))
    with pytest.raises(PaiError, match="broken"):
        observe(inventory, ("one",), Stage(kit.engine({"observe.yml": [PaiError("broken")]})))
