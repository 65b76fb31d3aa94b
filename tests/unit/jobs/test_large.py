"""Job files of the largest size that a member can send: read or refused without minutes of a processor."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from pai_install.jobs.read import MAX_DOCUMENTS, read_job_text

SIZE = 512 * 1024  # of a request's body
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
}


@pytest.mark.parametrize("name", FILES)
def test_a_large_file_is_soon_refused(name: str) -> None:
    begin = time.process_time()
    reading = read_job_text(FILES[name], Path("job.yaml"))
    assert time.process_time() - begin < 20  # quadratic ones took up to half an hour
    assert reading.job is None
    assert reading.problems


def test_more_documents_than_the_most_are_refused() -> None:
    assert {problem.code for problem in read_job_text("kind: Job\n---\n" * 101, Path("x")).problems} == {"job.count"}
    found = read_job_text("kind: Job\n---\n" * (MAX_DOCUMENTS - 1) + "kind: [Job\n", Path("x")).problems
    assert "job.count" not in {problem.code for problem in found}
    assert found[-1].line == 2 * MAX_DOCUMENTS - 1
