"""The profile of the site in the cluster."""

from __future__ import annotations

from pai_install.console.model.profiles import REFS
from pai_install.report.run_history import RUNS
from pai_install.users.console_rights import PROFILE, PROFILE_IN


def test_the_console_may_read_the_profile_and_the_runs() -> None:
    assert tuple(ref.name for ref in (*REFS, RUNS)) == PROFILE
    assert {ref.namespace for ref in (*REFS, RUNS)} == {PROFILE_IN}
