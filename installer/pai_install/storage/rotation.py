"""The rotation of a storage: transitions of where it stands. Pure.

Between two transitions the cluster is brought to what the grants say, and every one of them keeps a generation that
jobs can use. Old PVs, PVCs and Secrets go with the last one; data never does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal

from pai_install.site.rotations import OldGeneration, StorageRotation, Value, definition_of
from pai_install.site.services.storages import StorageEntry

Stage = Literal[
    "take back", "copy", "write", "close", "empty", "copy the rest", "claim", "prove", "open", "retire", "none"
]


def stage_of(rotation: StorageRotation) -> Stage:
    """What is to be done next."""
    if rotation.undoing:
        return "take back"
    if rotation.changes is not None:
        return "copy" if rotation.older[-1].copying == "first" else "write"
    if not rotation.proven:
        return _unproven(rotation)
    if rotation.closed:
        return "open"
    return "retire" if rotation.older else "none"


def left_to_do(name: str, rotation: StorageRotation) -> str:
    """What a rotation waits for, as a sentence without a full stop; empty for nothing."""
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
            return f"a rotation to generation {rotation.generation} was interrupted: {command} goes on with it"


def _unproven(rotation: StorageRotation) -> Stage:
    """With the claim of the one before: no new pod may use that, no pod uses it, it is given up, and taken over."""
    if rotation.claimed:
        return "prove"
    if not rotation.closed:
        return "close"
    if rotation.older[-1].claimed:
        return "empty"
    return "copy the rest" if rotation.older[-1].due else "claim"


def begun(
    rotation: StorageRotation | None,
    storage: StorageEntry,
    groups: Collection[str],
    changes: Mapping[str, Value],
    taken: Collection[str],
    *,
    same_name: bool = False,
    copied: bool = False,
) -> StorageRotation:
    """With a next generation that the site's file does not define yet. taken: names that no claim may have.

    same_name: it takes over the claim of the one before. copied: the data is to come over.
    """
    now = rotation or settled(storage.name)
    number = next(it for it in range(now.last + 1, now.last + len(taken) + 2) if _claim(storage, it) not in taken)
    old = OldGeneration(
        generation=now.generation,
        claim=now.claim,
        definition=definition_of(storage),
        groups=tuple(groups),
        volumes=now.volumes,
        copying="first" if copied else "",
    )
    return StorageRotation(
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


def settled(name: str) -> StorageRotation:
    """Of a storage that was never rotated."""
    return StorageRotation(generation=1, claim=name, last=1)


def edited(rotation: StorageRotation, before: str, after: str) -> StorageRotation:
    """With the texts that the site's file had and is to have."""
    return _changed(rotation, before=before, after=after)


def measured(rotation: StorageRotation, *, filled: bool) -> StorageRotation:
    """It is known whether the new place had something in it."""
    return _with_last(rotation, filled=filled)


def copied(rotation: StorageRotation, generation: int) -> StorageRotation:
    """The copy of an older generation's data that was due is made."""
    return _with(rotation, generation, lambda old: {"copying": "last" if old.copying == "first" else "done"})


def uncopied(rotation: StorageRotation) -> StorageRotation:
    """Nothing more is copied: what pods wrote since the first copy stays at the old place alone."""
    older = (old.model_copy(update={"copying": ""}) if old.due else old for old in rotation.older)
    return _changed(rotation, older=tuple(older))


def shut(rotation: StorageRotation, generation: int) -> StorageRotation:
    """No new pod may use the claim of an older generation, of which the last copy is made."""
    return _with(rotation, generation, lambda _old: {"closed": True})


def written(rotation: StorageRotation) -> StorageRotation:
    """The site's file defines the newest, which new jobs use from now on."""
    return _changed(rotation, changes=None)


def closed(rotation: StorageRotation) -> StorageRotation:
    """No new pod may use the claim."""
    return _changed(rotation, closed=True)


def released(rotation: StorageRotation) -> StorageRotation:
    """The generation before has no PVC any longer; its PV, and the data, stay."""
    return _with_last(rotation, claimed=False)


def claimed(rotation: StorageRotation) -> StorageRotation:
    """The newest has the PVC."""
    return _changed(rotation, claimed=True)


def proved(rotation: StorageRotation) -> StorageRotation:
    """The newest works: there is nothing to take back."""
    return _changed(rotation, proven=True, before="", after="")


def opened(rotation: StorageRotation) -> StorageRotation:
    """New pods may use the claim."""
    return _changed(rotation, closed=False)


def retired(rotation: StorageRotation, generations: Collection[int]) -> StorageRotation:
    """Without those older ones; one that is not copied to the end stays."""
    older = (old for old in rotation.older if old.generation not in generations or old.due)
    return _changed(rotation, older=tuple(older))


def taken_back(rotation: StorageRotation) -> StorageRotation:
    """The newest goes; the generation before is what new jobs use. The site's file has to say so, too."""
    return _changed(rotation, undoing=True, changes=None, claimed=not rotation.same_name)


def reclaimed(rotation: StorageRotation) -> StorageRotation:
    """The generation before has its PVC again, and new pods may use it."""
    return _changed(_with_last(rotation, claimed=True), closed=False)


def undone(rotation: StorageRotation) -> StorageRotation:
    """The site's file defines the generation before again."""
    *older, old = rotation.older
    return StorageRotation(
        generation=old.generation,
        claim=old.claim,
        last=rotation.last,
        volumes=old.volumes,
        older=tuple(older),
    )


def _with_last(rotation: StorageRotation, **fields: bool) -> StorageRotation:
    return _with(rotation, rotation.older[-1].generation, lambda _old: fields)


def _with(
    rotation: StorageRotation, generation: int, fields: Callable[[OldGeneration], Mapping[str, object]]
) -> StorageRotation:
    """With fields of an older generation changed."""
    older = (old.model_copy(update=fields(old)) if old.generation == generation else old for old in rotation.older)
    return _changed(rotation, older=tuple(older))


def _changed(rotation: StorageRotation, **fields: Any) -> StorageRotation:  # noqa: ANN401 - each is checked by the model
    return StorageRotation.model_validate({**rotation.model_dump(), **fields})
