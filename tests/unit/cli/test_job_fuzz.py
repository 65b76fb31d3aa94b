"""No file whatever gives a traceback to `job submit`: it becomes objects, or is refused with what is wrong.

PAI_FUZZ_EXAMPLES raises the number of examples (60).
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pai_install.app.job_submission import compile_unchecked
from pai_install.app.requested_job import JobOptions
from pai_install.errors import ExitCode, PaiError
from pai_install.jobs.read import read_job
from pai_install.kube.objects import JsonObject
from pai_install.profile.model import ClusterProfile
from pai_install.profile.project import profile_of
from pai_install.scheduling.model import Backend
from tests.examples import GROUP, SEARCH, SHORT_SEARCH, names, site_of, text_of
from tests.unit.jobs.test_fuzz import FILES
from tests.unit.site.test_fuzz import Mutation, mutations

SOURCES = (*(str(path) for path in FILES), *names())


@functools.cache
def source(name: str) -> bytes:
    return Path(name).read_bytes() if name.startswith("/") else text_of(name, *SHORT_SEARCH * (name == SEARCH)).encode()


@functools.cache
def profile_at(backend: Backend) -> ClusterProfile:
    return profile_of(site_of(backend))


@pytest.mark.parametrize("backend", ["kueue", "volcano", "hived"])
@settings(
    max_examples=int(os.environ.get("PAI_FUZZ_EXAMPLES", "60")),
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(name=st.sampled_from(SOURCES), changes=st.lists(mutations, max_size=4))
def test_mutated_files_never_give_a_traceback(
    tmp_path: Path, backend: Backend, name: str, changes: list[Mutation]
) -> None:
    data = source(name)
    for change in changes:
        data = change(data)
    path = tmp_path / f"job{Path(name).suffix}"
    path.write_bytes(data)
    wrong, made = submitted(path, backend)
    if wrong is not None:
        assert wrong.exit_code in {ExitCode.SITE_INVALID, ExitCode.USAGE}
        assert str(wrong)
    assert (wrong is None) == bool(made)
    assert all(one["metadata"]["name"] and one["metadata"]["namespace"] == GROUP for one in made)


def submitted(path: Path, backend: Backend) -> tuple[PaiError | None, list[JsonObject]]:
    """What the API server would be given, or why it would not."""
    try:
        request = JobOptions(group=GROUP, user="alice")
        work, _ = compile_unchecked(profile_at(backend), request, read_job(path))
    except PaiError as error:
        return error, []
    return None, [one.item for one in work.jobs]
