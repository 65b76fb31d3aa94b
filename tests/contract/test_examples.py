"""The examples: some scheduler takes each, Python reads its program, and it runs in the lab with little changed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from pai_install.jobs.model import Job
from pai_install.jobs.read import read_job_text
from pai_install.scheduling.model import BACKENDS
from tests.examples import FOLDER, NOT_IN_THE_LAB, SEARCH, backends_of, lab_variant, names, reading, text_of

IMAGE = "pai.test/rendezvous:1"
NAMES = names()
OPENPAI = [name for name in NAMES if name.startswith("openpai/")]
MAY_CHANGE = re.compile(r"(image|uri|command|commands\[\d+\]|cpu|memory|cpuNumber|memoryMB|shmMB)$")


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of a document with where it is."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from leaves(item, f"{path}.{key}")
    elif isinstance(value, list) and not path.endswith(".command"):
        for number, item in enumerate(value):
            yield from leaves(item, f"{path}[{number}]")
    else:
        yield path, value


def parsed(text: str) -> list[tuple[str, Any]]:
    # OpenPAI's references are no YAML, and stand for themselves here
    return list(leaves(list(yaml.safe_load_all(text.replace("<%", "(").replace("%>", ")")))))


def test_every_folder_has_an_example() -> None:
    assert {path.name for path in FOLDER.iterdir() if path.is_dir()} == {name.split("/")[0] for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_it_is_taken_by_a_scheduler_without_a_warning(name: str) -> None:
    taken = [backend for backend, good in backends_of(name).items() if good]
    assert taken, reading(name, "kueue").problems
    assert reading(name, taken[0]).problems == ()


@pytest.mark.parametrize("name", OPENPAI)
def test_jobs_of_openpai_run_with_every_scheduler(name: str) -> None:
    assert set(backends_of(name)) == set(BACKENDS)
    assert all(backends_of(name).values())


@pytest.mark.parametrize("name", NAMES)
def test_in_the_lab_image_program_and_sizes_differ_and_nothing_else(name: str) -> None:
    text = text_of(name)
    before, after = parsed(text), parsed(lab_variant(text, IMAGE))
    assert [path for path, _ in before] == [path for path, _ in after]
    changed = {path for (path, old), (_, new) in zip(before, after, strict=True) if old != new}
    assert [path for path in changed if not MAY_CHANGE.search(path)] == []
    images = [value for path, value in after if re.search(r"\.(image|uri)$", path)]
    assert images
    assert set(images) == {IMAGE}


@pytest.mark.parametrize("name", sorted(set(NAMES) - NOT_IN_THE_LAB))
def test_in_the_lab_nothing_starts_that_its_image_has_not(name: str) -> None:
    commands = " ".join(str(value) for path, value in parsed(lab_variant(text_of(name), IMAGE)) if "command" in path)
    assert not re.search(r"\b(curl|tar|git|mpirun|jupyter)\b", commands)
    assert "/opt/program.py" in commands or "-c" in commands


@pytest.mark.parametrize("name", OPENPAI)
def test_in_the_lab_a_job_keeps_its_roles(name: str) -> None:
    found = [read_job_text(text, FOLDER / name).job for text in (text_of(name), lab_variant(text_of(name), IMAGE))]
    shapes = [
        [(role.name, role.instances, role.resources.gpus, role.ports) for role in job.roles]
        for job in found
        if isinstance(job, Job)
    ]
    assert len(shapes) == len(found)
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("name", NAMES)
def test_programs_are_python(name: str) -> None:
    for part in yaml.safe_load_all(text_of(name).replace("<%", "(").replace("%>", ")")):
        if part.get("kind") == "ConfigMap":
            for file, program in part["data"].items():
                compile(program, f"{name}/{file}", "exec")


def pods(value: Any) -> Iterator[Mapping[str, Any]]:
    """Every pod's specification in a document."""
    if isinstance(value, Mapping):
        if "containers" in value:
            yield value
        for item in value.values():
            yield from pods(item)
    for item in value if isinstance(value, list) else ():
        yield from pods(item)


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(OPENPAI)))
def test_pods_with_gpus_see_them(name: str) -> None:
    """Where nvidia is not the default runtime, the RuntimeClass of that name is what shows a container its GPUs."""
    for pod in pods(list(yaml.safe_load_all(text_of(name)))):
        asks = any("nvidia.com/gpu" in container["resources"]["limits"] for container in pod["containers"])
        assert pod.get("runtimeClassName") == ("nvidia" if asks else None)


def test_the_same_program_trains_in_both_ways() -> None:
    for names_of_one in (
        ("tensorflow/volcano.yaml", "tensorflow/tfjob.yaml"),
        ("pytorch/jobset.yaml", "pytorch/pytorchjob.yaml"),
    ):
        programs = {next(yaml.safe_load_all(text_of(name)))["data"]["train.py"] for name in names_of_one}
        assert len(programs) == 1


def test_volcano_restarts_a_gang_whole() -> None:
    for name in ("tensorflow/volcano.yaml", "mindspore/volcano.yaml"):
        job = list(yaml.safe_load_all(text_of(name)))[1]["spec"]
        assert job["minAvailable"] == sum(task["replicas"] for task in job["tasks"])
        assert {"event": "PodEvicted", "action": "RestartJob"} in job["policies"]
        assert [task["name"] for task in job["tasks"] if "policies" in task] == ["worker"]
        assert job["tasks"][1]["policies"] == [{"event": "TaskCompleted", "action": "CompleteJob"}]


def test_a_search_has_a_job_for_each_trial_in_its_queue_with_the_lowest_priority() -> None:
    jobs = list(yaml.safe_load_all(text_of(SEARCH, "--rates=0.1,0.2", "--widths=1,2,3", "--queue=research")))[1:]
    assert len({job["metadata"]["name"] for job in jobs}) == 6
    for job in jobs:
        labels = job["metadata"]["labels"]
        assert labels["kueue.x-k8s.io/queue-name"] == "research"
        assert labels["kueue.x-k8s.io/priority-class"] == "oppo"
