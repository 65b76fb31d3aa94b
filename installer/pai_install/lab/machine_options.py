"""Options of `lab up` beyond the site: `WORD` for all machines, `MACHINE=WORD` for one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from pai_install.lab.mixin import checked_mixin
from pai_install.lab.spec import LabSpec
from pai_install.lab.suite import checked_suite


@dataclass(frozen=True, slots=True)
class Choice:
    """Machine -> its suite, if given. Machine -> mix-ins, in the order of the command line."""

    suites: Mapping[str, str] = field(default_factory=dict)
    mixins: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def chosen(spec: LabSpec, suites: Iterable[str], mixins: Iterable[str]) -> Choice:
    """Returns the choice from the command line. Raises PaiError for unknown machines, suites, or mix-ins."""
    requested = _per_machine(spec, mixins, checked_mixin)
    named = {machine: words[-1] for machine, words in _per_machine(spec, suites, checked_suite).items()}
    return Choice(named, {machine: tuple(dict.fromkeys(words)) for machine, words in requested.items()})


def _per_machine(spec: LabSpec, words: Iterable[str], checked: Callable[[str], str]) -> dict[str, list[str]]:
    """Returns machine -> words: first the words for all machines, then its own."""
    split = [word.rpartition("=") for word in words]
    found: dict[str, list[str]] = {}
    for name, equals, word in sorted(split, key=lambda parts: bool(parts[1])):
        machines = (spec.machine(name),) if equals else spec.machines
        for machine in machines:
            found.setdefault(machine.name, []).append(checked(word))
    return found
