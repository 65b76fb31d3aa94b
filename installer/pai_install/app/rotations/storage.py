"""Rotations of storages: another server, path, account, or mount options, while jobs run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from pydantic import Field

from pai_install.app.context import App
from pai_install.app.frontend import FileDifference
from pai_install.app.rotations.storage_pods import notify_pods
from pai_install.app.rotations.storage_stages import (
    BIND_S,
    KINDS,
    VERB,
    StorageRotation,
    entry_of,
    passes,
    refusal,
    wait_until_bound,
)
from pai_install.app.site_edit import checked_site
from pai_install.app.storage import StorageSource, require_keys_of_type, require_storage
from pai_install.cluster.client import ClusterClient, Select
from pai_install.errors import ExitCode, PaiError
from pai_install.operations.storage_rotate import StorageRotate, StorageTry
from pai_install.preflight.model import size_text
from pai_install.site.load import SERVICES
from pai_install.site.model import Site
from pai_install.site.rotations import StorageRotationState, Value
from pai_install.site.services.storages import StorageEntry
from pai_install.site_edit.shown import difference
from pai_install.storage import rotation as transitions
from pai_install.storage.compile import current_grants
from pai_install.storage.copying import Measured, copy_conflict, copy_route, each_machine
from pai_install.storage.model import Grant
from pai_install.storage.objects import probe_volume_objects
from pai_install.storage.place import place
from pai_install.storage.rotation import NOTHING, stage_of
from pai_install.system.parameters import Parameter

_PROBE = {"pai-install/probe": "storage-place"}
_PROBE_PREFIX = "pai-try-"


class RotateStorage(StorageSource):
    """The keys to change, and how."""

    name: Annotated[str, Parameter(positional=True, metavar="NAME")]
    same_name: bool = Field(
        default=False, description="Keep the name of the claim. No pod can use the storage during the switch."
    )
    emergency: bool = Field(
        default=False, description="Delete pods that use the old volume, for example after a key leak."
    )
    copy_data: Annotated[bool | None, Parameter(flag="--copy/--no-copy")] = Field(
        None,
        description="Copy the data while jobs run, with a final sync when no pod uses the old volume. With --finish, "
        "--no-copy skips the final sync.",
    )
    finish: bool = Field(default=False, description="Only complete a pending rotation.")
    timeout_s: Annotated[int, Parameter(flag="--timeout", metavar="SECONDS")] = Field(
        600, ge=1, le=7 * 86400, description="Time limit for pods that must end, in seconds."
    )
    check: bool = Field(default=False, description="Only show the stages, and the pods that use the storage.")

    def changes(self) -> dict[str, Value]:
        """Keys of the definition that change."""
        return {key: tuple(value) if isinstance(value, list) else value for key, value in self.keys().items()}  # type: ignore[misc]


def rotate_storage(app: App, request: RotateStorage) -> int:
    """Rotates until the end, or until pods that use the old generation must end. The exit code."""
    if not request.check:
        app.frontend.require_answers()
    require_storage(app.site, request.name)
    command = _Command(app, request)
    state = app.site.rotations.get(request.name)
    # In the last stage jobs use the newest generation already, so the next rotation may begin.
    if state is not None and stage_of(state) not in ("retire", NOTHING):
        return command.resume(state)
    if request.finish or not request.changes():
        return command.finish(state)
    return command.start()


class _Command:
    def __init__(self, app: App, request: RotateStorage) -> None:
        self._app = app
        self._request = request
        self._name = request.name
        self._rotation = StorageRotation(app, request.name, emergency=request.emergency, timeout_s=request.timeout_s)

    def resume(self, state: StorageRotationState) -> int:
        """Continues an interrupted rotation."""
        finish = f"complete it first: pai-install {VERB} {self._name} --finish"
        if self._differs(state):
            raise refusal("storage-rotation-unfinished", f"another rotation of {self._name} is unfinished", finish)
        if self._request.copy_data and not state.older[-1].copying:
            raise refusal(
                "storage-rotation-without-copy", f"the rotation of {self._name} was started without --copy", finish
            )
        self._app.notify(f"resuming the rotation of {self._name} to generation {state.generation}")
        if self._request.check:
            return ExitCode.OK
        if not self._app.confirm("resume"):
            return ExitCode.PREFLIGHT_FAILED
        return self._advance(state)

    def finish(self, state: StorageRotationState | None) -> int:
        """Removes generations that no pod uses any longer."""
        if not self._request.finish and (state is None or not state.unfinished):
            raise PaiError(
                f"cannot rotate {self._name}: no change is given",
                code="storage-rotate-without-change",
                exit_code=ExitCode.USAGE,
                remedy="add an option, for example --server",
            )
        if state is None:
            self._app.notify(f"no rotation of {self._name} is unfinished")
            return ExitCode.OK
        if self._request.check:
            notify_pods(self._app, self._rotation.pods() if state.unfinished else ())
            return ExitCode.OK
        return self._advance(state)

    def _advance(self, state: StorageRotationState) -> int:
        if self._request.copy_data is False:
            self._rotation.save(transitions.without_copies(state))
        return self._rotation.advance()

    def start(self) -> int:
        """Starts a rotation if every worker can use the new place."""
        site = self._app.site
        entry = entry_of(site, self._name)
        self._require_keys(entry)
        grant = next((grant for grant in current_grants(site) if grant.storage.name == self._name), None)
        if grant is None:
            remedy = "edit its definition, or grant it with pai-install storage grant"
            raise refusal("storage-of-no-group", f"{self._name} is granted to no group, so no job uses it", remedy)
        before, after, desired = self._desired(site)
        if before == after:
            self._app.notify(f"{self._name} has this definition already")
            return ExitCode.OK
        self._require_copyable(site, entry, desired)
        state = self._next_state(site, entry)
        self._announce(state, entry, desired)
        if self._request.check:
            return ExitCode.OK
        if not self._app.confirm("rotate"):
            return ExitCode.PREFLIGHT_FAILED
        self._require_converged()
        # Tested before anything is written: a place that a worker cannot use must change nothing.
        if code := self._try(grant, state, desired):
            return code
        state = transitions.changed(state, before=before, after=after)
        if self._request.copy_data:
            state = transitions.with_last(state, filled=self._measure(grant, state, desired))
        # Saved before the first stage, so that an interrupted command knows what is left to do.
        self._rotation.save(state)
        return self._rotation.advance()

    def _differs(self, state: StorageRotationState) -> bool:
        """Whether the command has other changes than the rotation that is in progress."""
        changes = self._request.changes()
        # Without changes the command continues whatever is unfinished.
        if not changes or state.undoing:
            return False
        if state.changes is not None:
            return state.changes != changes
        text = self._rotation.text()
        # The file has the changes already, so an edit with the same ones changes nothing.
        return self._rotation.edited(text, changes) != text

    def _require_keys(self, entry: StorageEntry) -> None:
        try:
            require_keys_of_type(entry.type, self._request.changes())
        except ValueError as error:
            raise PaiError(str(error), code="storage-options-unknown", exit_code=ExitCode.USAGE) from None

    def _desired(self, site: Site) -> tuple[str, str, StorageEntry]:
        """The text of the site's file now, with the changes, and the definition in that."""
        before = self._rotation.text()
        after = self._rotation.edited(before, self._request.changes())
        desired = checked_site(self._app, self._app.loaded, after)
        file = str(self._app.site_dir / SERVICES)
        text = difference(file, before, after, (site.services, desired.services))
        self._app.frontend.notify(FileDifference(text))
        return before, after, entry_of(desired, self._name)

    def _require_copyable(self, site: Site, entry: StorageEntry, desired: StorageEntry) -> None:
        """Raises PaiError while older data is still to be copied, and where a copy is impossible."""
        state = site.rotations.get(self._name)
        if due := [str(old.generation) for old in state.older if old.due] if state is not None else []:
            remedy = (
                f"pai-install {VERB} {self._name} --finish when no pod uses it, or with --emergency, which ends them"
            )
            raise refusal("storage-copy-unfinished", f"generation {', '.join(due)} is not copied to its end", remedy)
        if self._request.copy_data and (conflict := copy_conflict(entry, desired)):
            raise refusal("storage-copy-impossible", *conflict)

    def _next_state(self, site: Site, entry: StorageEntry) -> StorageRotationState:
        groups = [grant.group for grant in current_grants(site) if grant.storage.name == self._name]
        names = [one.name for one in site.services.storages or ()]
        return transitions.started(
            site.rotations.get(self._name),
            entry,
            groups,
            self._request.changes(),
            names,
            same_name=self._request.same_name,
            copied=bool(self._request.copy_data),
        )

    def _announce(self, state: StorageRotationState, entry: StorageEntry, desired: StorageEntry) -> None:
        where = " on every worker" if self._request.copy_data and each_machine(desired) else ""
        self._app.notify(f"{self._name}: {place(entry)} -> {place(desired)}{where}")
        self._app.notify("1. Mount the new place on every worker, write, and read; nothing changes where one cannot")
        for number, stage in enumerate(self._rotation.stages(state), start=2):
            self._app.notify(f"{number}. {stage.title}")
        notify_pods(self._app, self._rotation.pods())

    def _require_converged(self) -> None:
        """Raises PaiError where the add-ons differ from the site: the first stage would change them, too."""
        if not self._app.dry_run(StorageRotate(storage=self._name), verb=VERB).plan.empty:
            raise refusal(
                "add-ons-not-applied",
                "the add-ons of the cluster differ from the site",
                "run pai-install apply; then run the same command again",
            )

    def _try(self, first: Grant, state: StorageRotationState, desired: StorageEntry) -> int:
        """The exit code of a test of the new place on every worker, with volumes that are removed again."""
        # The test has object names of its own, which cannot meet those of the rotation.
        grant = Grant(desired, first.group, first.namespace, state.generation, prefix=_PROBE_PREFIX)
        self._app.notify("\nTesting the new place on every worker")
        with _created(self._app.cluster, grant):
            outcome = self._app.run_agreed(StorageTry(grants=(grant,)))
        if passes(outcome):
            return ExitCode.OK
        self._app.notify(f"nothing was changed: a worker cannot use {place(desired)}")
        return outcome.exit_code or ExitCode.VERIFICATION_FAILED

    def _measure(self, grant: Grant, state: StorageRotationState, desired: StorageEntry) -> bool:
        """Whether the new folder has data. Raises PaiError before any change if the copy would fail."""
        self._app.notify("\nCounting what is to be copied")
        found = self._rotation.copier().measure(copy_route(grant, desired, state.generation))
        for node, amount in found:
            self._app.notify(f"{node}: {_amount_text(amount)}")
            if amount.same:
                raise refusal(
                    "storage-copy-to-itself",
                    f"{place(grant.storage)} and {place(desired)} are one folder",
                    "run the same command without --copy",
                )
            if amount.lacks_room:
                needed, free = size_text(amount.size or 0), size_text(amount.free or 0)
                raise refusal(
                    "storage-copy-without-room",
                    f"{place(desired)} has {free} free on {node}, and the data needs {needed}",
                    "make room there",
                )
        return not all(amount.empty for _node, amount in found)


def _amount_text(amount: Measured) -> str:
    free = size_text(amount.free) if amount.free is not None else "unknown"
    what = (
        "more than can be counted in time" if amount.size is None else f"{amount.files} files, {size_text(amount.size)}"
    )
    lost = f"; the new place does not keep {amount.lost}" if amount.lost else ""
    return f"to copy: {what}; free in the new place: {free}{'' if amount.empty else '; it is not empty'}{lost}"


@contextmanager
def _created(cluster: ClusterClient, grant: Grant) -> Iterator[None]:
    """Objects of a grant for the time of a test. Those of a killed test go first."""
    probes = Select(KINDS, labels=",".join(f"{key}={value}" for key, value in _PROBE.items()))
    cluster.delete_selected(probes, wait_s=BIND_S)
    try:
        cluster.create(probe_volume_objects(grant, _PROBE))
        wait_until_bound(cluster, grant)
        yield
    finally:
        cluster.delete_selected(probes)
