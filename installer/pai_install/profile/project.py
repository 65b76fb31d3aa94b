"""A site -> its ClusterProfile. Pure."""

from __future__ import annotations

from pai_install.profile.model import (
    ClusterProfile,
    ProfileCode,
    ProfileGrant,
    ProfileGroup,
    ProfileHdfs,
    ProfileStorage,
)
from pai_install.scheduling.block_workers import job_workers
from pai_install.scheduling.read import scheduling_of
from pai_install.site.groups import administrates, groups_of
from pai_install.site.model import Site
from pai_install.site.schedulers import has_training_operator
from pai_install.site.services.storages import StorageEntry
from pai_install.site.use_limits import all_limits
from pai_install.storage.compile import grants_of


def profile_of(site: Site) -> ClusterProfile:
    """The profile of a site. Each field is named here, so that a new setting of the site stays out of it."""
    return ClusterProfile(
        scheduling=scheduling_of(site),
        groups=tuple(
            ProfileGroup(
                name=one.name,
                namespace=one.namespace,
                administrators=administrates(one),
                description=one.group.description or "",
                external_name=one.group.external_name or "",
            )
            for one in groups_of(site.services)
        ),
        storages=tuple(map(_storage, site.services.storages or ())),
        grants=tuple(
            ProfileGrant(
                storage=one.storage.name,
                group=one.group,
                claim=one.claim,
                shared=one.storage.share,
                claimed=one.claimed,
                current=one.current,
                machine=one.storage.machine or "",
            )
            for one in grants_of(site)
        ),
        workers=tuple(job_workers(site).values()),
        training_operator=has_training_operator(site),
        use_limits=all_limits(site),
        code=_code(site),
        hdfs=_hdfs(site),
    )


def _code(site: Site) -> ProfileCode:
    jobs = site.services.jobs
    limit = jobs.code if jobs is not None else None
    if limit is None:
        return ProfileCode()
    return ProfileCode(storage=limit.storage or "", max_mib=limit.max_mib, keep_days=limit.keep_days)


def _hdfs(site: Site) -> ProfileHdfs | None:
    hdfs = site.services.jobs.hdfs if site.services.jobs is not None else None
    return ProfileHdfs(storage=hdfs.storage, path=hdfs.path) if hdfs is not None else None


def _storage(entry: StorageEntry) -> ProfileStorage:
    """Options of other mounts than NFS may hold a login."""
    return ProfileStorage(
        name=entry.name,
        type=entry.type,
        server=entry.server or "",
        path=entry.path or entry.share_name or entry.container_name or "",
        shared=entry.share,
        read_only=not entry.written,
        mount_options=entry.mount_options if entry.type == "nfs" else (),
        description=entry.description,
    )
