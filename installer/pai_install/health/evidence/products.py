"""The table of NVIDIA's GPUs and driver branches that comes with the program (products.yml)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, time
from functools import cache
from importlib import resources

from pai_install.system.yaml import load_yaml


@dataclass(frozen=True, slots=True)
class Generation:
    """One generation of GPUs. age: 0 for the oldest. first_branch, last_branch: None where no limit is known."""

    name: str
    age: int
    match: re.Pattern[str]
    first_branch: int | None
    last_branch: int | None


@dataclass(frozen=True, slots=True)
class Products:
    """The whole table. generations: by name, oldest first. remapping_since: the age of the first that remaps rows.

    maintained_until: the day (UTC) until which maintained_branches are known to be maintained.
    """

    generations: dict[str, Generation]
    remapping_since: int
    consumer: re.Pattern[str]
    fabric: re.Pattern[str]
    virtual: re.Pattern[str]
    maintained_branches: tuple[int, ...]
    maintained_until: datetime
    ended_branches: tuple[int, ...]

    def age(self, generation: str) -> int:
        """Returns the position in the order of generations, or -1 if unknown."""
        found = self.generations.get(generation)
        return found.age if found else -1


@cache
def products() -> Products:
    """The table, read once."""
    raw = load_yaml(resources.files(__package__).joinpath("products.yml").read_text())
    generations = {
        row["name"]: Generation(
            row["name"], age, re.compile(row["match"]), row.get("first_branch"), row.get("last_branch")
        )
        for age, row in enumerate(raw["generations"])
    }
    return Products(
        generations,
        generations[raw["remapping_since"]].age,
        re.compile(raw["consumer"]),
        re.compile(raw["fabric"]),
        re.compile(raw["virtual"]),
        tuple(raw["maintained_branches"]),
        datetime.combine(raw["maintained_until"], time(), UTC),
        tuple(raw["ended_branches"]),
    )
