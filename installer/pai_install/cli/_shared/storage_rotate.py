"""`pai-install storage rotate`: what is asked for, what it means, the trial of the new place, and then the stages."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import click

from pai_install.cli._shared.act import How, require_answer
from pai_install.cli._shared.site_edit import Editing, checked_site
from pai_install.cli._shared.storage_edit import known_storage
from pai_install.cli._shared.storage_entry import require_of_type
from pai_install.cli._shared.storage_stages import Stages
from pai_install.cli._shared.storage_wish import (
    BIND_S,
    KINDS,
    VERB,
    Wish,
    entry_of,
    good,
    refusal,
    tell_users,
    wait_bound,
)
from pai_install.cli._shared.tell import say
from pai_install.cli.options import seconds_option
from pai_install.cluster.client import ClusterClient, Select
from pai_install.errors import ExitCode, PaiError
from pai_install.operations.storage_rotate import StorageRotate, StorageTry
from pai_install.preflight.model import size_text
from pai_install.site.load import SERVICES, load_site
from pai_install.site.model import Site
from pai_install.site.rotations import StorageRotation
from pai_install.site.services.storages import StorageEntry
from pai_install.site_edit.shown import difference
from pai_install.storage.compile import current_grants
from pai_install.storage.copying import Measured, each_machine, senseless, way
from pai_install.storage.model import Grant
from pai_install.storage.objects import stand_in
from pai_install.storage.place import place
from pai_install.storage.rotation import begun, edited, measured, settled, stage_of, uncopied

_TRY = {"pai-install/probe": "storage-place"}
_TRY_PREFIX = "pai-try-"


_OPTIONS = (
    click.option(
        "--same-name", is_flag=True, help="Keep the name of the claim. No pod can use the storage during the switch."
    ),
    click.option(
        "--emergency", is_flag=True, help="Delete pods that use the old volume, for example after a key leak."
    ),
    click.option(
        "--copy/--no-copy",
        default=None,
        help="Copy the data while jobs run, with a final sync when no pod uses the old volume. With --finish, "
        "--no-copy skips the final sync.",
    ),
    click.option("--finish", is_flag=True, help="Only complete a pending rotation."),
    seconds_option("--timeout", 1, 7 * 86400, 600, "Time limit for pods that must end, in seconds."),
)


def wish_options(verb: Callable[..., int]) -> Callable[..., int]:
    """Adds the options of how to rotate, and gives the verb them, `name` and `changes` as one `wish`."""
    keys = [info.name for info in fields(Wish)]

    @functools.wraps(verb)  # with the options that the verb has of its own
    def gathered(**words: Any) -> int:  # noqa: ANN401 - click's values
        given = {key: words.pop(key) for key in keys}
        return verb(wish=Wish(**given), **words)

    command: Callable[..., int] = gathered
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def rotate_storage(editing: Editing, wish: Wish) -> int:
    """Takes the rotation to its end, or as far as pods that use the old generation let it; the exit code."""
    require_answer(How(yes=editing.yes, check=editing.check))
    site = load_site(editing.site_dir).site
    known_storage(site, wish.name)
    asked, rotation = _Asked(editing, wish), site.rotations.get(wish.name)
    if rotation is not None and stage_of(rotation) not in ("retire", "none"):
        return asked.resume(rotation)
    if wish.finish or not wish.changes:
        return asked.finish(rotation)
    return asked.begin(site)


class _Asked:
    def __init__(self, editing: Editing, wish: Wish) -> None:
        self._editing = editing
        self._wish = wish
        self._name = wish.name
        self._stages = Stages(editing, wish)

    def resume(self, rotation: StorageRotation) -> int:
        """Goes on where an interrupted one was."""
        if self._other(rotation):
            raise refusal(
                "storage-rotation-unfinished",
                f"another rotation of {self._name} is unfinished",
                "go on with it first: --finish",
            )
        if self._wish.copy and not rotation.older[-1].copying:
            raise refusal(
                "storage-rotation-without-copy",
                f"the rotation of {self._name} was begun without --copy",
                "go on with it first: --finish",
            )
        say(f"the rotation of {self._name} to generation {rotation.generation} goes on")
        if self._editing.check:
            return ExitCode.OK
        if not self._stages.agreed("go on"):
            return ExitCode.PREFLIGHT_FAILED
        return self._go_on(rotation)

    def _go_on(self, rotation: StorageRotation) -> int:
        if self._wish.copy is False:
            self._stages.save(uncopied(rotation))
        return self._stages.go_on()

    def _other(self, rotation: StorageRotation) -> bool:
        """Whether something else is asked for than what was begun."""
        changes = self._wish.changes
        if not changes or rotation.undoing:
            return False
        if rotation.changes is not None:
            return rotation.changes != changes
        text = self._editing.file.read_bytes().decode()
        return self._stages.edited(text, changes) != text

    def finish(self, rotation: StorageRotation | None) -> int:
        """Takes away what no pod uses any longer."""
        if not self._wish.finish and (rotation is None or not rotation.unfinished):
            raise PaiError(
                f"{VERB} {self._name}: say what changes, e.g. --server",
                code="storage-rotate-without-change",
                exit_code=ExitCode.USAGE,
            )
        if rotation is None:
            say(f"no rotation of {self._name} is unfinished")
            return ExitCode.OK
        if self._editing.check:
            tell_users(self._stages.users() if rotation.unfinished else ())
            return ExitCode.OK
        return self._go_on(rotation)

    def begin(self, site: Site) -> int:
        """Begins one, where the new place can be used."""
        entry = entry_of(site, self._name)
        require_of_type(entry.type, self._wish.changes)
        if not any(grant.storage.name == self._name for grant in current_grants(site)):
            remedy = "edit its definition; storage grant grants it"
            raise refusal("storage-of-no-group", f"{self._name} is granted to no group, so no job uses it", remedy)
        before, after, wanted = self._wanted(site)
        if before == after:
            say(f"{self._name} is defined so already: nothing to do")
            return ExitCode.OK
        self._require_sensible(site, wanted)
        rotation = self._next(site, entry)
        self._tell(site, rotation, wanted)
        if self._editing.check:
            return ExitCode.OK
        if not self._stages.agreed("rotate"):
            return ExitCode.PREFLIGHT_FAILED
        self._require_settled()
        if code := self._tried(site, rotation, wanted):
            return code
        rotation = edited(rotation, before, after)
        if self._wish.copy:
            rotation = measured(rotation, filled=self._filled(entry, wanted, rotation))
        self._stages.save(rotation)
        return self._stages.go_on()

    def _require_sensible(self, site: Site, wanted: StorageEntry) -> None:
        """No older data is still to be copied, and what is asked for can be. Raises PaiError."""
        rotation = site.rotations.get(self._name)
        if due := [str(old.generation) for old in rotation.older if old.due] if rotation is not None else []:
            remedy = f"pai-install {VERB} {self._name} --finish, when no pod uses it; --emergency ends them"
            raise refusal(
                "storage-copy-unfinished", f"generation {', '.join(due)} is not copied to the end yet", remedy
            )
        if self._wish.copy and (found := senseless(entry_of(site, self._name), wanted)):
            raise refusal("storage-copy-impossible", *found)

    def _filled(self, entry: StorageEntry, wanted: StorageEntry, rotation: StorageRotation) -> bool:
        """Whether the new place has something in it; refuses what cannot be copied before anything is changed."""
        say("\nCounting what is to be copied")
        grant = next(it for it in current_grants(self._stages.site()) if it.storage.name == self._name)
        found = self._stages.copier().measured(way(grant, wanted, rotation.generation))
        for node, it in found:
            say(f"{node}: {_counted(it)}")
            if it.same:
                raise refusal(
                    "storage-copy-to-itself",
                    f"{place(entry)} and {place(wanted)} are one folder",
                    "the same command without --copy",
                )
            if it.lacks_room:
                needed, free = size_text(it.size or 0), size_text(it.free or 0)
                raise refusal(
                    "storage-copy-without-room",
                    f"{place(wanted)} has {free} free on {node}, and {needed} come",
                    "make room there",
                )
        return not all(it.empty for _node, it in found)

    def _next(self, site: Site, entry: StorageEntry) -> StorageRotation:
        groups = [grant.group for grant in current_grants(site) if grant.storage.name == self._name]
        names = [one.name for one in site.services.storages or ()]
        rotation, changes = site.rotations.get(self._name), dict(self._wish.changes)
        return begun(
            rotation, entry, groups, changes, names, same_name=self._wish.same_name, copied=bool(self._wish.copy)
        )

    def _wanted(self, site: Site) -> tuple[str, str, StorageEntry]:
        """The text of the site's file now and with the changes, and what that makes of the storage."""
        before = self._editing.file.read_bytes().decode()
        after = self._stages.edited(before, self._wish.changes)
        wanted = checked_site(self._editing, load_site(self._editing.site_dir), after)
        shown = difference(str(self._editing.site_dir / SERVICES), before, after, (site.services, wanted.services))
        click.echo(shown, nl=False)
        return before, after, entry_of(wanted, self._name)

    def _tell(self, site: Site, rotation: StorageRotation, wanted: StorageEntry) -> None:
        say(f"{self._name}: {place(entry_of(site, self._name))} -> {place(wanted)}")
        old = site.rotations.get(self._name) or settled(self._name)
        copying = _copying(entry_of(site, self._name), wanted) if self._wish.copy else ""
        stages = _same_name(old.claim, self._wish) if rotation.same_name else _beside(old, rotation, self._wish)
        lines = filter(None, (_FIRST, copying, *stages))
        for number, line in enumerate(lines, start=1):
            say(f"{number}. {line}")
        tell_users(self._stages.users())

    def _require_settled(self) -> None:
        """Nothing of the add-ons is left to do: else an apply would come with the first stage. Raises PaiError."""
        if not self._stages.runs.standing(StorageRotate(storage=self._name)).plan.empty:
            raise refusal(
                "add-ons-not-applied",
                "the cluster's add-ons differ from the site",
                "run apply first; then the same command again",
            )

    def _tried(self, site: Site, rotation: StorageRotation, wanted: StorageEntry) -> int:
        """The exit code of every worker's trial of the new place, by objects that are removed again."""
        first = next(grant for grant in current_grants(site) if grant.storage.name == self._name)
        grant = Grant(wanted, first.group, first.namespace, rotation.generation, prefix=_TRY_PREFIX)
        say("\nTrying the new place on every worker")
        with self._stages.cluster() as cluster, _made(cluster, grant):
            outcome = self._stages.runs.run(StorageTry(grants=(grant,)))
        if not good(outcome):
            say(f"nothing was changed: {place(wanted)} cannot be used as the findings say")
            return outcome.exit_code or ExitCode.VERIFICATION_FAILED
        return ExitCode.OK


def _counted(found: Measured) -> str:
    free = size_text(found.free) if found.free is not None else "an unknown number of bytes"
    what = "more than can be counted in time" if found.size is None else f"{found.files} files, {size_text(found.size)}"
    lost = f"; the new place keeps no {found.lost}" if found.lost else ""
    return f"to copy: {what}; free in the new place: {free}{'' if found.empty else '; it is not empty'}{lost}"


_FIRST = "every worker mounts the new place, writes and reads; nothing is changed where one cannot"


def _copying(old: StorageEntry, new: StorageEntry) -> str:
    where = " on every worker" if each_machine(new) else ""
    kept = "with owners, modes, times, links, holes and attributes"
    return f"rsync copies all of it{where} from {place(old)} to {place(new)}, while jobs go on: {kept}"


def _beside(old: StorageRotation, rotation: StorageRotation, wish: Wish) -> Iterator[str]:
    new = rotation.claim
    yield f"{SERVICES} names it; each group gets a PV, a PVC {new} and, where it needs one, a Secret"
    yield "every worker mounts them; where one cannot, all is taken back"
    if wish.emergency:
        yield f"new jobs use the claim {new}; pods that use {old.claim} are ended, and it goes"
    else:
        yield f"new jobs use the claim {new}; those that run keep {old.claim}, which goes when none is left"
    if wish.copy:
        yield (
            f"before {old.claim} goes, what changed since comes over, and every byte is compared; the newer file "
            "stays, and what is replaced is kept in .pai-install-copy"
        )


def _same_name(claim: str, wish: Wish) -> Iterator[str]:
    yield f"{SERVICES} names it; no new pod may use the claim {claim}"
    ended = "pods that use it are ended" if wish.emergency else "pods that use it are waited for"
    yield f"{ended}, {wish.timeout_s:g} s at most; where one is left, all is taken back; those that ended are deleted"
    if wish.copy:
        yield "what changed since comes over, and every byte is compared; where that fails, all is taken back"
    yield f"the PVC {claim} is deleted and made again, for the new place; the old PV stays until the end, data always"
    yield "every worker mounts it; where one cannot, all is taken back; then new pods may use it again"


@contextmanager
def _made(cluster: ClusterClient, grant: Grant) -> Iterator[None]:
    """Objects of a grant for the time of a trial; what a killed one left goes first."""
    ours = Select(KINDS, labels=",".join(f"{key}={value}" for key, value in _TRY.items()))
    cluster.delete_selected(ours, wait_s=BIND_S)
    try:
        cluster.create(stand_in(grant, _TRY))
        wait_bound(cluster, grant)
        yield
    finally:
        cluster.delete_selected(ours)
