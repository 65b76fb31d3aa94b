"""Recordings as plain data and back: what a run keeps as evidence, and what tests read. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pai_install.schedulers.self_test.model import GangSeen, PodSeen, Recording, Sample, SceneMark


def as_data(recording: Recording) -> dict[str, Any]:
    """The recording as JSON has it."""
    return {
        "scenario": recording.scenario,
        "refused": recording.refused,
        "marks": [[mark.name, mark.began_s, mark.met_s, mark.why] for mark in recording.marks],
        "samples": [
            {"at_s": sample.at_s, "gangs": {name: _gang(gang) for name, gang in sample.gangs.items()}}
            for sample in recording.samples
        ],
    }


def _gang(gang: GangSeen) -> dict[str, Any]:
    pods = [[pod.id, pod.name, pod.node, pod.phase, pod.ending] for pod in gang.pods]
    return {"pods": pods, "done": gang.done, "why": gang.why}


def parse(data: Mapping[str, Any]) -> Recording:
    """The recording in what `as_data` gave."""
    return Recording(
        data["scenario"],
        tuple(
            Sample(row["at_s"], {name: _parsed(gang) for name, gang in row["gangs"].items()}) for row in data["samples"]
        ),
        tuple(SceneMark(*mark) for mark in data["marks"]),
        data["refused"],
    )


def _parsed(gang: Mapping[str, Any]) -> GangSeen:
    return GangSeen(tuple(PodSeen(*pod) for pod in gang["pods"]), gang["done"], gang["why"])
