"""The stages of a storage's rotation, as changes of its state. Pure.

After each stage the grants are applied to the cluster, and jobs can always use one generation. The last stage removes
old PVs, PVCs, and Secrets, never data.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from pai_install.site.rotations import OldGeneration, StorageRotationState, Value, definition_of
from pai_install.site.services.storages import StorageEntry


@dataclass(frozen=True, slots=True)
class StageRule:
    """done: whether a rotation is past a stage. after: the rotation once the stage is done."""

    done: Callable[[StorageRotationState], bool]
    after: Callable[[StorageRotationState], StorageRotationState]


def changed(rotation: StorageRotationState, **fields: Any) -> StorageRotationState:  # noqa: ANN401 - the model checks
    """With other fields."""
    return StorageRotationState.model_validate({**rotation.model_dump(), **fields})


def with_old(rotation: StorageRotationState, generation: int, **fields: object) -> StorageRotationState:
    """With other fields of an older generation."""
    older = (old.model_copy(update=fields) if old.generation == generation else old for old in rotation.older)
    return changed(rotation, older=tuple(older))


def with_last(rotation: StorageRotationState, **fields: object) -> StorageRotationState:
    """With other fields of the generation before the newest."""
    return with_old(rotation, rotation.older[-1].generation, **fields)


# the stages in their order
STAGES: Mapping[str, StageRule] = {
    "copy": StageRule(
        lambda it: it.changes is None or it.older[-1].copying != "first", lambda it: with_last(it, copying="last")
    ),
    "update-config": StageRule(lambda it: it.changes is None, lambda it: changed(it, changes=None)),
    # a claim that keeps its name: no new pod may use it, no pod uses it, the old PVC goes, and the new one comes
    "block-claim": StageRule(lambda it: it.claimed or it.closed, lambda it: changed(it, closed=True)),
    "release-claim": StageRule(
        lambda it: it.claimed or not it.older[-1].claimed, lambda it: with_last(it, claimed=False)
    ),
    "copy-rest": StageRule(lambda it: it.claimed or not it.older[-1].due, lambda it: with_last(it, copying="done")),
    "take-claim": StageRule(lambda it: it.claimed, lambda it: changed(it, claimed=True)),
    "verify": StageRule(lambda it: it.proven, lambda it: changed(it, proven=True, before="", after="")),
    "unblock-claim": StageRule(lambda it: not it.closed, lambda it: changed(it, closed=False)),
    "retire": StageRule(
        lambda it: not it.older, lambda it: without_generations(it, [old.generation for old in it.older])
    ),
}
ROLLBACK, NOTHING = "rollback", "none"


def stage_of(rotation: StorageRotationState) -> str:
    """The stage that comes next. ROLLBACK and NOTHING are no stages."""
    if rotation.undoing:
        return ROLLBACK
    return next((stage for stage, rule in STAGES.items() if not rule.done(rotation)), NOTHING)


def pending_action(name: str, rotation: StorageRotationState) -> str:
    """Returns the next action of a rotation as a sentence without a full stop, or "" if it is complete."""
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
    # The name of a claim could be that of another storage. Such a number is skipped.
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


def without_copies(rotation: StorageRotationState) -> StorageRotationState:
    """Ends the copies: files that pods wrote since the first copy stay at the old place."""
    older = (old.model_copy(update={"copying": ""}) if old.due else old for old in rotation.older)
    return changed(rotation, older=tuple(older))


def without_generations(rotation: StorageRotationState, generations: Collection[int]) -> StorageRotationState:
    """Returns the rotation without these older generations. An incompletely copied one stays."""
    older = (old for old in rotation.older if old.generation not in generations or old.due)
    return changed(rotation, older=tuple(older))


def rolling_back(rotation: StorageRotationState) -> StorageRotationState:
    """Returns the rotation without the newest generation. New jobs use the one before, which the site's file must also
    name.
    """
    return changed(rotation, undoing=True, changes=None, claimed=not rotation.same_name)


def claim_restored(rotation: StorageRotationState) -> StorageRotationState:
    """The generation before has its PVC again, and new pods may use it."""
    return changed(with_last(rotation, claimed=True), closed=False)


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
