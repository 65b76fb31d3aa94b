"""Which machines --limit means."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.errors import ExitCode, PaiError
from pai_install.site.load import load_site
from pai_install.site.model import Site
from pai_install.site.selection import require_present, watched

LAYOUT = """\
machine-sku:
  cpu: {mem: 8Gi, cpu: {vcore: 4}}
machine-list:
  - {hostname: master, hostip: 10.0.0.1, machine-type: cpu, pai-master: "true"}
  - {hostname: one, hostip: 10.0.0.2, machine-type: cpu, pai-worker: "true"}
  - {hostname: two, hostip: 10.0.0.3, machine-type: cpu, pai-worker: "true"}
  - {hostname: files, hostip: 10.0.0.5, machine-type: cpu, pai-storage: "true"}
  - {hostname: away, hostip: 10.0.0.4, machine-type: cpu, pai-worker: "true", absent: true}
"""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    (tmp_path / "layout.yaml").write_text(LAYOUT)
    (tmp_path / "config.yaml").write_text("user: admin\nssh_key_file_path: /k\n")
    return load_site(tmp_path).site


def test_what_the_named_ones_join_and_mount_is_looked_at_with_them(site: Site) -> None:
    assert watched(site, ()) == ("master", "one", "two", "files")
    assert watched(site, ("two",)) == ("master", "two", "files")


@pytest.mark.parametrize("name", ["away", "three"])
def test_absent_and_unknown_machines_are_refused_by_name(site: Site, name: str, snapshot: SnapshotAssertion) -> None:
    require_present(site, ("one", "master"))
    with pytest.raises(PaiError, match=name) as caught:
        require_present(site, ("one", name))
    assert caught.value.exit_code is ExitCode.USAGE
    assert caught.value.remedy == snapshot
