"""The usage of a site, whatever its scheduler."""

from __future__ import annotations

import pytest

from pai_install.schedulers.usage import kinds_of, usage_of
from pai_install.scheduling.model import BACKENDS, Backend
from tests.virtual_clusters import two_teams, with_backend


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_cluster_without_jobs_and_nodes(backend: Backend) -> None:
    scheduling = with_backend(two_teams(), backend)
    usage = usage_of(scheduling, [()] * len(kinds_of(backend)), {})
    assert (dict(usage.uses), dict(usage.lent), usage.jobs) == ({}, {}, ())
    assert [one.units for one in usage.unmet] == [28]
