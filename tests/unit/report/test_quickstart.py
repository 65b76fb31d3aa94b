"""The next commands after a quickstart."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_install.report.quickstart import quickstart_text
from pai_install.site import load_site
from tests.perf.big_site import write_site


@pytest.mark.parametrize("program", ["./pai-install", "pai-install"])
def test_the_next_commands_are_what_a_user_of_this_installation_types(program: str, tmp_path: Path) -> None:
    write_site(tmp_path, 5)
    lines = quickstart_text(load_site(tmp_path).site, Path("lab"), 90, None, program=program).splitlines()
    assert {line.split()[0] for line in lines[2:]} == {program}
