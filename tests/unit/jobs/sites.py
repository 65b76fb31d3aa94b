"""Sites that jobs are checked against."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

from pai_install.profile.model import ClusterProfile
from pai_install.profile.project import profile_of
from pai_install.site.load import load_site
from tests.unit.scheduling.test_read import VALID
from tests.unit.site.rules.scheduling.sites import GROUPS as NO_GRANTS
from tests.unit.site.rules.scheduling.sites import LAYOUT
from tests.unit.site.sites import write_site

GRANTS = "{groupname: Vision_1, extension: {acls: {storageConfigs: [team]}}}"
GROUPS = NO_GRANTS.replace("{groupname: Vision_1}", GRANTS)
STORAGES = """
storages:
  - {name: team, type: nfs, server: nas.example.com, path: /team, description: Data <b>& models</b>}
  - {name: sets, type: nfs, server: nas.example.com, path: /sets}
"""


@functools.cache
def research(services: str = VALID + GROUPS + STORAGES) -> ClusterProfile:
    """A site with the virtual clusters research and default, groups and storages."""
    with tempfile.TemporaryDirectory() as folder:
        return profile_of(load_site(write_site(Path(folder) / "cluster", layout=LAYOUT, services=services)).site)
