"""Jobs and what each scheduler is given for them: compiled, compared, and written anew.

`python -m tests.jobs` writes tests/golden/jobs/CASE/BACKEND.yml: look at the difference before you keep it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from pai_install.jobs.model import Job
from pai_install.schedulers.jobs import objects_of
from pai_install.scheduling.model import BACKENDS, Backend
from tests.addons import as_yaml
from tests.unit.jobs.examples import elastic, servers_and_workers, single, somewhere, whole

GOLDEN = Path(__file__).parent / "golden" / "jobs"
CASES: Mapping[str, Callable[[], Job]] = {it.__name__: it for it in (single, servers_and_workers, elastic)}


def expected(case: str, backend: Backend) -> Path:
    """The objects of a case."""
    return GOLDEN / case.replace("_", "-") / f"{backend}.yml"


def compiled(case: str, backend: Backend) -> str:
    """The objects of a case as they are kept."""
    job = CASES[case]()
    return as_yaml(
        list(objects_of(whole(job) if (case, backend) == ("elastic", "volcano") else job, somewhere(backend)))
    )


if __name__ == "__main__":
    for case in CASES:
        for backend in BACKENDS:
            path = expected(case, backend)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(compiled(case, backend))
