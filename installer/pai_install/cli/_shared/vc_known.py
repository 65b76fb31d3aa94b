"""Virtual clusters that a site has, or a usage error that says which."""

from __future__ import annotations

from pai_install.documents.validate import did_you_mean
from pai_install.errors import ExitCode, PaiError
from pai_install.report.virtual_clusters import NONE
from pai_install.scheduling.model import Scheduling, VirtualCluster
from pai_install.scheduling.read import scheduling_of
from pai_install.site.model import Site


def scheduling_at(site: Site) -> Scheduling:
    """How the site divides its workers; without virtual clusters a PaiError."""
    scheduling = scheduling_of(site)
    if scheduling is None:
        raise PaiError(
            NONE.partition(":")[0],
            code="virtual-clusters-missing",
            remedy=NONE.partition(": ")[2].strip(),
            exit_code=ExitCode.USAGE,
        )
    return scheduling


def known_cluster(scheduling: Scheduling, name: str) -> VirtualCluster:
    """The virtual cluster called `name`, else a PaiError that names what was probably meant."""
    names = [cluster.name for cluster in scheduling.clusters]
    if name not in names:
        message = f"{name} is no virtual cluster of this site"
        raise PaiError(
            message, code="unknown-virtual-cluster", remedy=did_you_mean(name, names), exit_code=ExitCode.USAGE
        )
    return scheduling.cluster(name)
