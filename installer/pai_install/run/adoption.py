"""Before a plan is made: storages that the cluster has already, made by hand, become generation 1 of the site's."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pai_install.checks.finding import Finding
from pai_install.cluster.client import ApiError, ClusterClient, NoClusterError, Select
from pai_install.errors import ExitCode, PaiError
from pai_install.health.cluster.adoption import Adoption, AwaitedGrant, adoption
from pai_install.plan.leader import leader_of
from pai_install.plan.model import Inventory
from pai_install.plan.observation import Observation
from pai_install.site.model import Site
from pai_install.site.rotations import StorageRotationState, read_rotations, save_rotations
from pai_install.storage.compile import current_grants
from pai_install.storage.objects import volume
from pai_install.storage.rotation import unrotated

_RECORD = "addon.storages"


def with_adopted(
    site: Site, observation: Observation, inventory: Inventory, cluster: ClusterClient, notify: Callable[[str], None]
) -> tuple[Site, tuple[Finding, ...]]:
    """Returns the site with adopted objects of its cluster, and findings about objects that cannot be adopted. Saves
    them in its state.

    The cluster is queried only if the storages differ from the last applied ones.
    """
    awaited = [
        AwaitedGrant(grant.storage.name, grant.namespace, grant.claim, grant.volume, volume(grant)["spec"])
        for grant in current_grants(site)
        # Only a first generation can have been made by hand. A rotation makes the later ones.
        if grant.generation == 1 and not grant.adopted
    ]
    if not awaited or not _differs(site, observation, inventory):
        return site, ()
    found = _looked_up(awaited, cluster)
    if found.volumes:
        site = _kept(site, found.volumes, notify)
    return site, found.findings


def _looked_up(awaited: list[AwaitedGrant], cluster: ClusterClient) -> Adoption:
    try:
        return adoption(awaited, *cluster.list(Select(("persistentvolumes",)), Select(("persistentvolumeclaims",))))
    except (NoClusterError, ApiError):
        return Adoption({}, ())  # the run may be what repairs the API; Kubernetes itself keeps a PVC as it is


def _differs(site: Site, observation: Observation, inventory: Inventory) -> bool:
    leader = leader_of(site, observation.machines)
    seen = observation.machines.get(leader)
    # A leader outside a cluster has no objects to adopt, and no API server to ask.
    if seen is None or not seen.kubernetes.joined:
        return False
    wanted = inventory.settings_of(leader)
    had = seen.roles.get(_RECORD)
    return _RECORD in wanted and (had is None or dict(had.settings) != dict(wanted[_RECORD]))


def _kept(site: Site, volumes: Mapping[str, Mapping[str, str]], notify: Callable[[str], None]) -> Site:
    known = read_rotations(site.directory)
    for name, found in volumes.items():
        # The name of an adopted PV does not follow from the site, so the state keeps it.
        rotation = known.get(name, unrotated(name))
        known[name] = StorageRotationState.model_validate(
            {**rotation.model_dump(), "volumes": {**rotation.volumes, **found}}
        )
        for namespace, pv in found.items():
            notify(
                f"storage {name}: PVC {namespace}/{name} and PV {pv} are there already, and are taken over as they are"
            )
    save_rotations(site.directory, known)
    return site.model_copy(update={"rotations": known})


def adoption_refusal(findings: tuple[Finding, ...]) -> PaiError:
    """Returns the error with each finding and its remedy."""
    return PaiError(
        "cannot adopt the storages of this site: PVCs with their names exist and differ",
        code="storage-claims-made-by-hand",
        details="\n".join(f"{found.message}\n    {found.remedy}" for found in findings),
        remedy="no changes made. Follow the advice below each line",
        exit_code=ExitCode.PREFLIGHT_FAILED,
    )
