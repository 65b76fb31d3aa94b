"""What is missing never passes: every value that a check reads is taken away, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from pai_install.checks.check import Check
from pai_install.checks.runner import results
from pai_install.checks.verdict import Verdict
from pai_install.preflight.evidence import PreflightEvidence, parse_evidence
from pai_install.preflight.model import Case, MachineJudge, PreflightFleet, case_of
from pai_install.preflight.rules import CHECKS
from pai_install.site import Site
from tests.unit.preflight.machines import CONFIG, DRIVER, NAMES, STORAGES, STORING, good, installed, read_site, timed

Raw = dict[str, Any]
# set by the controller host, not by the machine
OURS = {"sudo_problem", "clock.requested", "clock.answered"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return read_site(Path(tmp_path_factory.mktemp("missing")) / "cluster", STORING, CONFIG + DRIVER, services=STORAGES)


def seen(base: Callable[[str], Raw], name: str, raw: Raw) -> dict[str, PreflightEvidence]:
    """Evidence of all machines, `raw` for the one named."""
    documents = {other: raw if other == name else base(other) for other in NAMES}
    parsed = {other: parse_evidence(document) for other, document in documents.items()}
    return {other: timed(item) if item.has("clock") else item for other, item in parsed.items()}


def case(site: Site, base: Callable[[str], Raw], name: str, raw: Raw) -> Case:
    return case_of(PreflightFleet(site, seen(base, name, raw)), name)


def verdict(check: Check[MachineJudge], about: Case) -> Verdict | None:
    """What the check says; None where its question does not arise."""
    about.record.begin()
    found = [about.record.settle(result) for result in results(check.judge, about)]
    return found[0].verdict if found else None


def readers(site: Site, base: Callable[[str], Raw], name: str) -> dict[str, list[Check[MachineJudge]]]:
    """Path of a value or part -> the checks that pass and have read it."""
    about = case(site, base, name, base(name))
    found: dict[str, list[Check[MachineJudge]]] = {}
    for check in CHECKS:
        if verdict(check, about) is Verdict.PASS:
            paths = set(about.record.names) - OURS
            for path in {*paths, *(path.partition(".")[0] for path in paths)}:
                found.setdefault(path, []).append(check)
    return found


def without(raw: Raw, path: str, value: object = ...) -> Raw:
    """The document without the value, in every entry of a list or mapping on the way; or with another one there."""
    changed = deepcopy(raw)
    *parents, last = path.split(".")
    for holder in holders([changed], parents):
        if value is ...:
            holder.pop(last, None)
        else:
            holder[last] = value
    return changed


def holders(places: list[Any], parents: list[str]) -> list[Any]:
    for name in parents:
        places = [entry for place in places for entry in entries(place[name], name)]
    return places


def entries(value: Any, name: str) -> Iterator[Any]:
    if name == "peers":
        yield from value.values()
    else:
        yield from value if isinstance(value, list) else [value]


@pytest.mark.parametrize("how", ["taken away", "null"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("base", [good, installed])
def test_a_check_never_passes_on_a_value_that_is_not_there(
    site: Site, base: Callable[[str], Raw], name: str, how: str
) -> None:
    for path, checks in readers(site, base, name).items():
        raw = without(base(name), path) if how == "taken away" else without(base(name), path, None)
        about = case(site, base, name, raw)
        for check in checks:
            assert verdict(check, about) is not Verdict.PASS, f"{check.id} passes without {path}"


def test_every_check_passes_somewhere_and_has_read_something(site: Site) -> None:
    found: Mapping[str, int] = {
        check.id: 1
        for base in (good, installed)
        for name in NAMES
        for checks in readers(site, base, name).values()
        for check in checks
    }
    assert {check.id for check in CHECKS} == set(found)


@pytest.mark.parametrize(
    "part", [part for part in PreflightEvidence.model_fields if part not in ("problems", "sudo_problem")]
)
def test_a_part_of_nonsense_is_as_good_as_none(site: Site, part: str) -> None:
    for check in readers(site, good, "master").get(part, []):
        about = case(site, good, "master", {**good("master"), part: "nonsense"})
        assert verdict(check, about) is not Verdict.PASS, f"{check.id} passes with {part} = nonsense"
