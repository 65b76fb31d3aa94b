"""ClusterProfile: the site data that jobs, schedulers, and users need. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, InstanceOf

from pai_install.documents.validate import did_you_mean
from pai_install.errors import ExitCode, PaiError
from pai_install.scheduling.model import Scheduling, VirtualCluster
from pai_install.site.services.storages import StorageType
from pai_install.site.use_limits import UseLimits, default_limits
from pai_install.site.workers import Workers

_NO_CLUSTERS = "add the sections scheduler and virtual-clusters to services-configuration.yaml"


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ProfileGroup(_Model):
    """A group of users. administrators: whether its members see and stop the jobs of all users.

    external_name: of the group at the identity provider.
    """

    name: str
    namespace: str
    administrators: bool = False
    description: str = ""
    external_name: str = ""


class ProfileStorage(_Model):
    """A storage. server, path: where it is, without keys. shared: all users share one folder."""

    name: str
    type: StorageType
    server: str = ""
    path: str = ""
    shared: bool = True
    read_only: bool = False
    mount_options: tuple[str, ...] = ()
    description: str = ""


class ProfileGrant(_Model):
    """A storage that a group may mount. claim: of the PVC. claimed: the PVC exists. current: new jobs use it.

    shared: all users share one folder. Otherwise each user has a folder. machine: the only node that has the folder,
    empty for all nodes.
    """

    storage: str
    group: str
    claim: str
    shared: bool
    claimed: bool = True
    current: bool = True
    machine: str = ""


class ProfileCode(_Model):
    """Where code above 1 MiB is kept. storage: "" for the only suitable storage of the group."""

    storage: str = ""
    max_mib: int = 1024
    keep_days: int = 30


class ProfileHdfs(_Model):
    """The storage that stands for HDFS in old job files. path: the folder of the storage that is the root of HDFS."""

    storage: str
    path: str = "/"


class PublishedProfile(_Model):
    """The part of the profile that `apply` publishes, next to the object of the virtual clusters.

    use_limits: by virtual cluster. "": all others.
    """

    groups: tuple[ProfileGroup, ...] = ()
    storages: tuple[ProfileStorage, ...] = ()
    grants: tuple[ProfileGrant, ...] = ()
    workers: tuple[Workers, ...] = ()
    training_operator: bool = False
    use_limits: Mapping[str, UseLimits] = {}
    code: ProfileCode = ProfileCode()
    hdfs: ProfileHdfs | None = None


class ClusterProfile(PublishedProfile):
    """A site without its secrets. scheduling: None for a site without virtual clusters."""

    scheduling: InstanceOf[Scheduling] | None = None

    def require_scheduling(self) -> Scheduling:
        """The division of the workers. Raises PaiError for a site without virtual clusters."""
        if self.scheduling is None:
            raise PaiError(
                "cannot use virtual clusters: this site has none",
                code="virtual-clusters-missing",
                remedy=_NO_CLUSTERS,
                exit_code=ExitCode.USAGE,
            )
        return self.scheduling

    def require_cluster(self, name: str) -> VirtualCluster:
        """The virtual cluster `name`. Raises PaiError for an unknown name."""
        scheduling = self.require_scheduling()
        names = [cluster.name for cluster in scheduling.clusters]
        if name not in names:
            raise PaiError(
                f"cannot find virtual cluster {name} in this site",
                code="unknown-virtual-cluster",
                remedy=did_you_mean(name, names),
                exit_code=ExitCode.USAGE,
            )
        return scheduling.cluster(name)

    def require_group(self, name: str) -> ProfileGroup:
        """The group `name`. Raises PaiError for an unknown name."""
        groups = {group.name: group for group in self.groups}
        if name not in groups:
            raise PaiError(
                f"cannot find group {name} in this site",
                code="unknown-group",
                remedy=did_you_mean(name, list(groups)),
                exit_code=ExitCode.USAGE,
            )
        return groups[name]

    def limits_of(self, cluster: str) -> UseLimits:
        """The limits of use in a virtual cluster."""
        return self.use_limits.get(cluster) or self.use_limits.get("") or default_limits()

    @property
    def absent(self) -> dict[str, tuple[str, ...]]:
        """SKU -> machines that the layout marks as absent."""
        return {one.sku: one.absent for one in self.workers}
