"""Where a rotation stands, and what that means for the grants: no order of transitions loses one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_install.site import Site, load_site
from pai_install.site.rotations import StorageRotationState
from pai_install.storage.compile import closed_claims, current_grants, grants_of
from pai_install.storage.objects import closings, volumes
from pai_install.storage.rotation import (
    ROLLBACK,
    STAGES,
    changed,
    claim_restored,
    rolled_back,
    rolling_back,
    stage_of,
    started,
    unrotated,
    with_last,
    with_old,
    without_copies,
    without_generations,
)
from tests.unit.site.sites import write_site

SERVICES = """\
storages:
  - {name: data, type: nfs, server: nas, path: /data}
  - {name: data-g2, type: nfs, server: nas, path: /other}
authentication:
  group-manager:
    grouplist:
      - {groupname: vision, extension: {acls: {storageConfigs: [data]}}}
      - {groupname: speech, extension: {acls: {storageConfigs: [data, data-g2]}}}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    folder: Path = tmp_path_factory.mktemp("site")
    return load_site(write_site(folder, services=SERVICES)).site


def begin(
    site: Site, now: StorageRotationState | None, *, same_name: bool = False, moves: bool = False
) -> StorageRotationState:
    storage = (site.services.storages or ())[0]
    names, changes = ["data", "data-g2"], {"path": "/new"}
    return started(now, storage, ["vision", "speech"], changes, names, same_name=same_name, copied=moves)


def forward(rotation: StorageRotationState) -> StorageRotationState:
    """After the next stage."""
    stage = stage_of(rotation)
    if stage == ROLLBACK:
        return rolled_back(claim_restored(rotation) if rotation.same_name else rotation)
    if stage == "copy":
        rotation = with_last(rotation, filled=True)
    if stage == "retire":
        rotation = moved(rotation)
    return STAGES[stage].after(rotation) if stage in STAGES else rotation


def moved(rotation: StorageRotationState) -> StorageRotationState:
    """After the last copies."""
    for old in rotation.older:
        if old.due:
            rotation = with_old(rotation, old.generation, closed=True, copying="done")
    return rotation


def at(site: Site, rotation: StorageRotationState) -> Site:
    return site.model_copy(update={"rotations": {"data": rotation}})


def check(site: Site, rotation: StorageRotationState) -> None:
    """Every group has one grant for new jobs, and no two objects have one name."""
    placed = at(site, rotation)
    mine = [(it.group, it.storage.name) for it in current_grants(placed) if it.storage.name == "data"]
    assert mine == [("vision", "data"), ("speech", "data")]
    assert [it.group for it in current_grants(placed) if it.storage.name == "data-g2"] == ["speech"]
    made = list(volumes(grants_of(placed)))
    names = [(it["kind"], it["metadata"].get("namespace"), it["metadata"]["name"]) for it in made]
    assert len(names) == len(set(names))
    volume_names = {it["metadata"]["name"] for it in made if it["kind"] == "PersistentVolume"}
    for claim in (it for it in made if it["kind"] == "PersistentVolumeClaim"):
        assert claim["spec"]["volumeName"] in volume_names
    withheld = [it for it in grants_of(placed) if it.current and not it.claimed]
    assert not withheld or rotation.same_name
    stay = {old.generation for old in without_generations(rotation, [old.generation for old in rotation.older]).older}
    assert stay == {old.generation for old in rotation.older if old.due}, "what is not copied to the end is not retired"
    if rotation.used:
        assert all(old.copying != "first" for old in rotation.older), "no job hears of a place before the first copy"
        assert not rotation.same_name or rotation.older[-1:] == () or not rotation.older[-1].due


@given(choices=st.lists(st.tuples(st.booleans(), st.integers(0, 10), st.booleans(), st.booleans()), max_size=5))
def test_no_row_of_rotations_broken_off_anywhere_loses_a_grant_or_data(
    site: Site, choices: list[tuple[bool, int, bool, bool]]
) -> None:
    now: StorageRotationState | None = None
    numbers: set[int] = {1}
    for same_name, stages, fails, moves in choices:
        rotation = begin(site, None if now is None else moved(now), same_name=same_name, moves=moves)
        assert rotation.generation not in numbers, "a number is given once"
        numbers.add(rotation.generation)
        assert rotation.claim != "data-g2"
        for _stage in range(stages):
            check(site, rotation)
            rotation = forward(rotation)
        copying = stage_of(rotation) in ("copy", "copy-rest")
        if fails and (copying or (not rotation.proven and rotation.changes is None and not rotation.undoing)):
            rotation = rolling_back(rotation)
        while stage_of(rotation) not in ("retire", "none"):
            check(site, rotation)
            rotation = forward(rotation)
        check(site, rotation)
        assert not rotation.closed
        now = rotation


def test_a_group_that_is_granted_it_meanwhile_gets_what_new_jobs_use(site: Site) -> None:
    storage = (site.services.storages or ())[0]
    rotation = started(None, storage, ["vision"], {"path": "/new"}, ["data"])
    for placed in (rotation, STAGES["update-config"].after(rotation)):
        mine = [it for it in grants_of(at(site, placed)) if it.storage.name == "data" and it.group == "speech"]
        assert [(it.claim, it.current) for it in mine] == [("data" if placed.hidden else "data-g2", True)]


def test_what_is_closed_is_one_claim_in_the_namespaces_of_its_groups(site: Site) -> None:
    placed = at(site, changed(begin(site, None, same_name=True), changes=None, closed=True))
    assert closed_claims(placed) == {"data": ("vision", "speech")}
    policy, binding = closings(closed_claims(placed))
    assert policy["metadata"] == binding["metadata"] == {"name": "pai-storage-data"}
    (validation,) = policy["spec"]["validations"]
    assert "v.persistentVolumeClaim.claimName != 'data'" in validation["expression"]
    (within,) = binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
    assert within["values"] == ["vision", "speech"]


def test_a_storage_that_was_never_rotated_has_the_claim_of_its_name() -> None:
    assert (unrotated("data").claim, stage_of(unrotated("data"))) == ("data", "none")


def test_the_old_claim_is_closed_while_its_last_copy_is_made(site: Site) -> None:
    rotation = begin(site, None, moves=True)
    while stage_of(rotation) != "retire":
        rotation = forward(rotation)
    assert closed_claims(at(site, rotation)) == {}
    assert closed_claims(at(site, with_old(rotation, 1, closed=True))) == {"data": ("vision", "speech")}
    done = without_generations(with_old(rotation, 1, closed=True, copying="done"), [1])
    assert (stage_of(done), closed_claims(at(site, done))) == ("none", {})


def test_without_further_copies_the_old_generation_may_go(site: Site) -> None:
    rotation = changed(without_copies(begin(site, None, moves=True)), changes=None)
    assert stage_of(without_generations(STAGES["verify"].after(rotation), [1])) == "none"
