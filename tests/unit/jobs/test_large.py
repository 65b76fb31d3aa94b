"""Job files of the largest size that a member can send: read or refused without minutes of a processor."""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path

import pytest

from pai_install.jobs.read import MAX_DOCUMENTS, read_job_text

SIZE = 512 * 1024  # of a request's body
# of a processor. A machine with other work takes longer for the same
MOST_S = 2.0
JOB = (
    "protocolVersion: 2\nname: n\ntype: job\nprerequisites:\n  - {name: i, type: dockerimage, uri: x}\n"
    "taskRoles:\n  t:\n    instances: 1\n    dockerImage: i\n"
    "    resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}\n    commands:\n"
)
MAPPING = "a: &a {" + ",".join(f"k{number}: 1" for number in range(3000)) + "}\n"
FILES = {
    "documents": "kind: Job\n---\n" * (SIZE // 14),
    "empty documents": "---\n" * (SIZE // 4),
    "merged mappings": f"{MAPPING}b:\n  <<: [{','.join(['*a'] * 2000)}]\n",
    "colons": ": " * (SIZE // 2),
    "brackets": "[" * SIZE,
    "references": JOB + "".join(f'      - "<% $parameters.x{number} %>"\n' for number in range(10_000)),
    "keys twice": "a: b\n" * (SIZE // 5),
    "items": "a: [" + "1," * (SIZE // 2 - 10) + "]\n",
    "mappings": "a: [" + "{}," * (SIZE // 3 - 10) + "]\n",
    "an error at the end": "a: [" + "1," * (SIZE // 2 - 10) + "}\n",
    "an error after keys": "".join(f"k{number}: 1\n" for number in range(40_000)) + "}\n",
    "an unknown alias at the end": "a: [" + "{}," * (SIZE // 3 - 10) + "*b]\n",
    "json": '{"a":[' + "1," * (SIZE // 2 - 20) + "1]}",
    "unknown keys": JOB + "      - a\n" + "".join(f"u{number}: 1\n" for number in range(40_000)),
}


LONG = "x" * 200_000
KEY = "k" * 50_000
ROLE = "{instances: 1, dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}, commands: [a]"
PARAMETERS = JOB.replace("taskRoles", f"parameters: {{p: {LONG}}}\nsecrets: {{s: {LONG}}}\ntaskRoles")
# each means more than fits in memory
BOMBS = {
    "references": PARAMETERS + f'      - "{"<% $parameters.p %>" * 10}"\n' * 500,
    "references of one line": PARAMETERS + f'      - "{"<% $parameters.p %>" * 5000}"\n',
    "secrets": PARAMETERS + f'      - "{"<% $secrets.s %>" * 5000}"\n',
    "secrets in parameters": JOB.replace(
        "taskRoles", f'parameters: {{p: "{"<% $secrets.s %>" * 4000}"}}\nsecrets: {{s: {"x" * 50_000}}}\ntaskRoles'
    )
    + f'      - "{"<% $parameters.p %>" * 100}"\n',
    "aliases": f"{JOB}      - &a {LONG}\n" + "      - *a\n" * 15_000,
    "aliases in Kubernetes": (
        f"apiVersion: batch/v1\nkind: Job\nmetadata: {{name: a, annotations: {{a: &a {LONG}}}}}\n"
        f"spec: {{template: {{spec: {{containers: [{{name: a, image: b, args: [{','.join(['*a'] * 15_000)}]}}]}}}}}}\n"
    ),
    "keys": f"a: &a {{{KEY}: 1}}\nb:\n" + "".join(f"  c{number}: {{<<: *a}}\n" for number in range(10_000)),
    "scripts of prerequisites": JOB.partition("taskRoles")[0]
    + f"  - {{name: s, type: script, plugin: a, callbacks: [{{event: taskStarts, commands: [{LONG}]}}]}}\ntaskRoles:\n"
    + "".join(f"  t{number}: {ROLE}, prerequisites: [s]}}\n" for number in range(1500)),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_does_not_fill_the_memory(name: str) -> None:
    assert len(BOMBS[name]) < SIZE
    tracemalloc.start()
    reading = read_job_text(BOMBS[name], Path("job.yaml"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 128 * 1024**2
    assert reading.job is None
    assert len(reading.problems) < 100


@pytest.mark.parametrize("name", FILES)
def test_a_large_file_is_soon_refused(name: str) -> None:
    begin = time.process_time()
    reading = read_job_text(FILES[name], Path("job.yaml"))
    assert time.process_time() - begin < MOST_S  # some took up to half an hour
    assert reading.job is None
    assert reading.problems


def test_more_documents_than_the_most_are_refused() -> None:
    assert {problem.code for problem in read_job_text("kind: Job\n---\n" * 101, Path("x")).problems} == {"job.count"}
    found = read_job_text("kind: Job\n---\n" * (MAX_DOCUMENTS - 1) + "kind: [Job\n", Path("x")).problems
    assert "job.count" not in {problem.code for problem in found}
    assert found[-1].line == 2 * MAX_DOCUMENTS - 1
