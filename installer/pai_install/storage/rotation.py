"""The rotation of a storage: transitions of where it stands. Pure.

Between two transitions the cluster is brought to what the grants say, and every one of them keeps a generation that
jobs can use. Old PVs, PVCs and Secrets go with the last one; data never does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from pai_install.site.rotations import OldGeneration, StorageRotationState, Value, definition_of
from pai_install.site.services.storages import StorageEntry

# stage -> whether a rotation is past it, in the order of the stages
_DONE: Mapping[str, Callable[[StorageRotationState], bool]] = {
    "copy": lambda it: it.changes is None or it.older[-1].copying != "first",
    "update-config": lambda it: it.changes is None,
    # a claim that keeps its name: no new pod may use it, no pod uses it, the old PVC goes, and the new one comes
    "block-claim": lambda it: it.claimed or it.closed,
    "release-claim": lambda it: it.claimed or not it.older[-1].claimed,
    "copy-rest": lambda it: it.claimed or not it.older[-1].due,
    "take-claim": lambda it: it.claimed,
    "verify": lambda it: it.proven,
    "unblock-claim": lambda it: not it.closed,
    "retire": lambda it: not it.older,
}
ROLLBACK, NOTHING = "rollback", "none"


def is_past(stage: str, rotation: StorageRotationState) -> bool:
    """Whether the rotation is past a stage."""
    return _DONE[stage](rotation)


def stage_of(rotation: StorageRotationState) -> str:
    """The stage that comes next. ROLLBACK and NOTHING are no stages."""
    if rotation.undoing:
        return ROLLBACK
    return next((stage for stage in _DONE if not is_past(stage, rotation)), NOTHING)


def pending_action(name: str, rotation: StorageRotationState) -> str:
    """What completes a rotation, as a sentence without a full stop. Empty where it is complete."""
    command = f"pai-install storage rotate {name} --finish"
    match stage_of(rotation):
        case "none":
            return ""
        case "retire":
            old = ", ".join(str(one.generation) for one in rotation.older)
            rest = "copies what changed since the first copy, and " if any(old.due for old in rotation.older) else ""
            then = f"{command} then {rest}removes its PV, PVC and Secret, never data"
            return f"generation {old} stands until no pod uses it: {then}"
        case _:
            return f"a rotation to generation {rotation.generation} was interrupted: {command} completes it"


def started(
    rotation: StorageRotationState | None,
    storage: StorageEntry,
    groups: Collection[str],
    changes: Mapping[str, Value],
    taken: Collection[str],
    *,
    same_name: bool = False,
    copied: bool = False,
) -> StorageRotationState:
    """With a next generation that the site's file does not define yet. taken: names that no claim may have.

    same_name: it takes over the claim of the one before. copied: the data is to come over.
    """
    now = rotation or unrotated(storage.name)
    number = next(it for it in range(now.last + 1, now.last + len(taken) + 2) if _claim(storage, it) not in taken)
    old = OldGeneration(
        generation=now.generation,
        claim=now.claim,
        definition=definition_of(storage),
        groups=tuple(groups),
        volumes=now.volumes,
        copying="first" if copied else "",
    )
    return StorageRotationState(
        generation=number,
        claim=now.claim if same_name else _claim(storage, number),
        last=number,
        changes=changes,
        proven=False,
        same_name=same_name,
        claimed=not same_name,
        older=(*now.older, old),
    )


def _claim(storage: StorageEntry, generation: int) -> str:
    return f"{storage.name}-g{generation}"


def unrotated(name: str) -> StorageRotationState:
    """Of a storage that was never rotated."""
    return StorageRotationState(generation=1, claim=name, last=1)


def with_texts(rotation: StorageRotationState, before: str, after: str) -> StorageRotationState:
    """With the texts that the site's file had and is to have."""
    return _changed(rotation, before=before, after=after)


def with_filled_target(rotation: StorageRotationState, *, filled: bool) -> StorageRotationState:
    """It is known whether the new place had something in it."""
    return _with_last(rotation, filled=filled)


def copied(rotation: StorageRotationState, generation: int) -> StorageRotationState:
    """The copy of an older generation's data that was due is made."""
    return _with(rotation, generation, lambda old: {"copying": "last" if old.copying == "first" else "done"})


def without_copies(rotation: StorageRotationState) -> StorageRotationState:
    """Nothing more is copied: what pods wrote since the first copy stays at the old place alone."""
    older = (old.model_copy(update={"copying": ""}) if old.due else old for old in rotation.older)
    return _changed(rotation, older=tuple(older))


def block_old_claim(rotation: StorageRotationState, generation: int) -> StorageRotationState:
    """No new pod may use the claim of an older generation, of which the last copy is made."""
    return _with(rotation, generation, lambda _old: {"closed": True})


def config_updated(rotation: StorageRotationState) -> StorageRotationState:
    """The site's file defines the newest, which new jobs use from now on."""
    return _changed(rotation, changes=None)


def block_claim(rotation: StorageRotationState) -> StorageRotationState:
    """No new pod may use the claim."""
    return _changed(rotation, closed=True)


def release_claim(rotation: StorageRotationState) -> StorageRotationState:
    """The generation before has no PVC any longer; its PV, and the data, stay."""
    return _with_last(rotation, claimed=False)


def take_claim(rotation: StorageRotationState) -> StorageRotationState:
    """The newest has the PVC."""
    return _changed(rotation, claimed=True)


def verified(rotation: StorageRotationState) -> StorageRotationState:
    """The newest works: there is nothing to take back."""
    return _changed(rotation, proven=True, before="", after="")


def unblock_claim(rotation: StorageRotationState) -> StorageRotationState:
    """New pods may use the claim."""
    return _changed(rotation, closed=False)


def retired(rotation: StorageRotationState, generations: Collection[int]) -> StorageRotationState:
    """Without those older ones; one that is not copied to the end stays."""
    older = (old for old in rotation.older if old.generation not in generations or old.due)
    return _changed(rotation, older=tuple(older))


def rolling_back(rotation: StorageRotationState) -> StorageRotationState:
    """The newest goes; the generation before is what new jobs use. The site's file has to say so, too."""
    return _changed(rotation, undoing=True, changes=None, claimed=not rotation.same_name)


def claim_restored(rotation: StorageRotationState) -> StorageRotationState:
    """The generation before has its PVC again, and new pods may use it."""
    return _changed(_with_last(rotation, claimed=True), closed=False)


def rolled_back(rotation: StorageRotationState) -> StorageRotationState:
    """The site's file defines the generation before again."""
    *older, old = rotation.older
    return StorageRotationState(
        generation=old.generation,
        claim=old.claim,
        last=rotation.last,
        volumes=old.volumes,
        older=tuple(older),
    )


def _with_last(rotation: StorageRotationState, **fields: bool) -> StorageRotationState:
    return _with(rotation, rotation.older[-1].generation, lambda _old: fields)


def _with(
    rotation: StorageRotationState, generation: int, fields: Callable[[OldGeneration], Mapping[str, object]]
) -> StorageRotationState:
    """With fields of an older generation changed."""
    older = (old.model_copy(update=fields(old)) if old.generation == generation else old for old in rotation.older)
    return _changed(rotation, older=tuple(older))


def _changed(rotation: StorageRotationState, **fields: Any) -> StorageRotationState:  # noqa: ANN401 - each is checked by the model
    return StorageRotationState.model_validate({**rotation.model_dump(), **fields})
