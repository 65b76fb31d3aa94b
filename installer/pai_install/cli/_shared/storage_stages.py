"""The stages of a storage's rotation: its state, the site's file, and what is brought to the cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import click

from pai_install.cli._shared.act import How
from pai_install.cli._shared.runs import Runs
from pai_install.cli._shared.site_edit import Editing, checked_site
from pai_install.cli._shared.storage_copy import Copier, CopyError
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
from pai_install.cluster.client import ClusterClient, Patch, Select
from pai_install.cluster.read import mounts
from pai_install.errors import ExitCode
from pai_install.kube.model import Ref
from pai_install.operations.storage_rotate import StorageRotate
from pai_install.operations.storage_test import StorageTest
from pai_install.report.storage import STORAGE_LABEL, Consumer, consumers_of
from pai_install.run.lock import site_lock
from pai_install.run.services_file import write_services
from pai_install.run.state import open_state
from pai_install.site.load import SERVICES, load_site
from pai_install.site.model import Site
from pai_install.site.rotations import OldGeneration, StorageRotation, Value, read_rotations, save_rotations
from pai_install.site_edit.spans import EditError
from pai_install.site_edit.storages import changed
from pai_install.storage import rotation as transitions
from pai_install.storage.compile import grants_of
from pai_install.storage.copying import Way, way
from pai_install.storage.model import Grant
from pai_install.storage.place import place
from pai_install.storage.rotation import Stage, stage_of
from pai_install.system.words import plural

_POLL_S = 3.0


class Stages:
    """What is left of one rotation. Each stage may be interrupted, and is then done again."""

    def __init__(self, editing: Editing, wish: Wish) -> None:
        self.editing = editing
        self.wish = wish
        self.name = wish.name
        self.runs = Runs(editing.site_dir, editing.environment, How(yes=True), VERB)
        self._stages: Mapping[Stage, Callable[[], int]] = {
            "take back": self._take_back,
            "copy": self._copy,
            "write": self._write,
            "close": self._close,
            "empty": self._empty,
            "copy the rest": self._copy_rest,
            "claim": self._claim,
            "prove": self._prove,
            "open": self._open,
        }

    def go_on(self) -> int:
        """Every stage that is left; the exit code."""
        while (stage := stage_of(self.rotation())) not in ("retire", "none"):
            code = self._stages[stage]()
            if stage == "take back":
                return code or ExitCode.VERIFICATION_FAILED
            if code and stage_of(self.rotation()) == "take back":
                return self._take_back() or code
            if code:
                return code
        return self._retire()

    def _copy(self) -> int:
        """The first copy, before a job hears of the new place."""
        say("\nThe first copy, while jobs go on")
        old = self.rotation().older[-1]
        return self._carry(old) or self._save(transitions.copied(self.rotation(), old.generation))

    def _copy_rest(self) -> int:
        """What changed since the first copy; no pod uses either place."""
        say("\nThe last copy")
        old = self.rotation().older[-1]
        return self._carry(old, last=True) or self._save(transitions.copied(self.rotation(), old.generation))

    def _carry(self, old: OldGeneration, *, last: bool = False, beside: bool = False) -> int:
        """Copies the data of an older generation. What an answer says no to is taken back while it can be."""
        try:
            self.copier().carry(replace(self.way(old), filled=old.filled, last=last, beside=beside))
        except CopyError as error:
            say(f"{error.message}\n{error.remedy}")
            return error.exit_code if self.rotation().proven else self._give_up(error.exit_code)
        return ExitCode.OK

    def copier(self) -> Copier:
        """What copies, on the workers of the site."""
        site, state = self.site(), open_state(self.editing.site_dir)
        image = self.editing.environment.image(site, state, "rsync", say)
        return Copier(self.cluster, tuple(it.hostname for it in site.workers), image, f"{VERB} {self.name}")

    def way(self, old: OldGeneration) -> Way:
        """From an older generation to the newest, also where the site's file has yet to define that."""
        rotation, site = self.rotation(), self.site()
        if rotation.changes is not None:
            text = self.edited(self.editing.file.read_bytes().decode(), rotation.changes)
            site = checked_site(self.editing, load_site(self.editing.site_dir), text)
        group = next((grant for grant in self._mine() if grant.current), None)
        if group is None:
            raise refusal(
                "storage-of-no-group", f"{self.name} is granted to no group", "grant it, or give --finish --no-copy"
            )
        grant = replace(group, storage=old.entry, generation=old.generation)
        return way(grant, entry_of(site, self.name), rotation.generation)

    def _write(self) -> int:
        """The site's file gets the changes; whatever else was edited meanwhile stays."""
        rotation = self.rotation()
        with site_lock(open_state(self.editing.site_dir).path, VERB):
            before = self.editing.file.read_bytes().decode()
            after = self.edited(before, rotation.changes or {})
            checked_site(self.editing, load_site(self.editing.site_dir), after)
            write_services(self.editing.file, after)
        first = rotation.before if before == after else before
        return self._save(transitions.written(transitions.edited(rotation, first, after)))

    def _close(self) -> int:
        say(f"\nNo new pod may use the claim {self.rotation().claim}")
        self._save(transitions.closed(self.rotation()))
        return self.bring()

    def _empty(self) -> int:
        """The claim is given up when no pod uses it; in time, or all is taken back."""
        if code := self.bring():
            return code
        if not self._ended():
            self._save(transitions.taken_back(self.rotation()))
            return ExitCode.PREFLIGHT_FAILED
        self._end(self.users(finished=True))  # Kubernetes keeps a PVC for them, too
        return self._save(transitions.released(self.rotation()))

    def _claim(self) -> int:
        """The old PVC goes, and its PV, with the data, stays; the new one comes under its name."""
        if code := self.bring():
            return code
        with self.cluster() as cluster:
            claim = self.rotation().claim
            self._require_gone(cluster, [grant for grant in self._mine() if grant.claim == claim])
        return self._save(transitions.claimed(self.rotation()))

    def _prove(self) -> int:
        """The newest generation in the cluster, mounted on every worker."""
        say(f"\nGeneration {self.rotation().generation} for new jobs")
        if code := self.bring():
            return self._give_up(code)
        self._wait_bound()
        outcome = self.runs.run(StorageTest(storages=(self.name,), all_grants=True))
        if not good(outcome):
            return self._give_up(outcome.exit_code or ExitCode.VERIFICATION_FAILED)
        return self._save(transitions.proved(self.rotation()))

    def _open(self) -> int:
        self._save(transitions.opened(self.rotation()))
        return self.bring()

    def _give_up(self, code: int) -> int:
        """What an answer says no to is taken back; after no answer, or Ctrl-C, the same command goes on."""
        if code in (ExitCode.STEP_FAILED, ExitCode.VERIFICATION_FAILED):
            self._save(transitions.taken_back(self.rotation()))
        return code

    def _take_back(self) -> int:
        say("\nTaking it back: jobs use the generation before")
        if code := self.bring():
            return code
        rotation = self.rotation()
        with self.cluster() as cluster:  # what an apply made that was refused halfway is in no record
            newest = f"{STORAGE_LABEL}={self.name},pai-install/generation={rotation.generation}"
            cluster.delete_selected(Select(KINDS, labels=newest))
            if not rotation.older[-1].claimed:
                self._free(cluster)
        if rotation.same_name:
            self._save(transitions.reclaimed(rotation))
            if code := self.bring():
                return code
            self._wait_bound()
        return self._file_back()

    def _free(self, cluster: ClusterClient) -> None:
        """The old PVs wait for a claim of that name again, whichever it is."""
        old = [grant for grant in self._mine() if grant.current]
        self._require_gone(cluster, old)
        anyone = {"spec": {"claimRef": {"uid": None, "resourceVersion": None}}}
        cluster.patch([Patch(Ref("persistentvolume", grant.volume), anyone) for grant in old])

    def _file_back(self) -> int:
        rotation, file = self.rotation(), self.editing.file
        old = rotation.older[-1].entry
        with site_lock(open_state(self.editing.site_dir).path, VERB):
            if file.read_bytes().decode() == rotation.after:
                write_services(file, rotation.before)
            if entry_of(self.site(), self.name) != old:
                remedy = f"define {self.name} as {place(old)} there; then pai-install {VERB} {self.name} --finish"
                raise refusal("site-file-changed-meanwhile", f"{file} was edited meanwhile", remedy)
        self._save(transitions.undone(rotation))
        say(f"{self.name} is {place(old)} again")
        return self.bring(final=True)

    def _retire(self) -> int:
        """What no pod uses goes, and what one does stays; in an emergency no pod does."""
        if self.wish.emergency:
            self._end_all()
        copied = self._last_copies()
        users = self.users()
        rotation = self.rotation()
        if idle := _idle(rotation, users):
            self._save(transitions.retired(rotation, [old.generation for old in idle]))
        code = self.bring(final=True) or copied
        say(f"new jobs use the claim {rotation.claim}")
        if users:
            tell_users(users)
            say(f"what they use stays until they end; then: pai-install {VERB} {self.name} --finish")
        return code

    def _last_copies(self) -> int:
        """What changed at old places that no pod uses any longer; from then on no new pod may, either."""
        for old in _idle(self.rotation(), self.users() if self._due() else ()):
            if not old.due:
                continue
            say(f"\nThe last copy of generation {old.generation}")
            if code := self._shut(old):
                return code
            if not any(one.claim == old.claim for one in self.users()):  # none has come meanwhile
                if code := self._carry(old, last=True, beside=True):
                    return code
                self._save(transitions.copied(self.rotation(), old.generation))
        return ExitCode.OK

    def _due(self) -> bool:
        return any(old.due for old in self.rotation().older)

    def _shut(self, old: OldGeneration) -> int:
        self._save(transitions.shut(self.rotation(), old.generation))
        return self.bring()

    # pods

    def _ended(self) -> bool:
        """Whether no pod uses the old generation in time; those that do are ended where that is agreed to."""
        users = self.users()
        if users and self.wish.emergency:
            self._end(users)
        if users:
            say(f"waiting for {plural(len(users), 'pod')} that use it, {self.wish.timeout_s:g} s at most")
        return _within(lambda: not self.users(), self.wish.timeout_s)

    def _end_all(self) -> None:
        """No pod with the old claims starts from now on, and those that run are ended."""
        users = self.users()
        if not users:
            return
        if not self.agreed(f"end {plural(len(users), 'pod')} that use what is old"):
            return
        if self._due():  # their claims stay until the last copy is made
            if any(self._shut(old) for old in self.rotation().older):
                raise refusal("claim-not-closed", "the old claim cannot be closed", "the same command with --finish")
        else:
            with self.cluster() as cluster:
                for namespace, name in {(one.namespace, one.claim) for one in users}:
                    cluster.delete([Ref("persistentvolumeclaim", name, namespace)])
        self._end(users)
        if not _within(lambda: not any(one.node for one in self.users()), self.wish.timeout_s):
            raise refusal(
                "pods-not-ended", "pods do not end", "look at their nodes; then the same command with --finish"
            )
        with self.cluster() as cluster:  # those that never started
            for one in self.users():
                cluster.delete([Ref("pod", one.name, one.namespace)])

    def _end(self, users: Collection[Consumer]) -> None:
        with self.cluster() as cluster:
            for one in users:
                cluster.delete([Ref("pod", one.name, one.namespace)])

    def users(self, *, finished: bool = False) -> tuple[Consumer, ...]:
        """The pods that use what is old, or the newest where that has none before it; or those that did."""
        rotation = self.site().rotations.get(self.name)
        old = {one.generation for one in rotation.older} if rotation and rotation.older else None
        mine = [grant for grant in self._mine() if grant.claimed and (old is None or grant.generation in old)]
        claims = [(grant.namespace, grant.claim) for grant in mine]
        with self.cluster() as cluster:
            seen = mounts(cluster, [one for one, _name in claims], f"{STORAGE_LABEL}={self.name}")
        return consumers_of(claims, seen, finished=finished)

    # what is read and written

    def agreed(self, question: str) -> bool:
        """Whether the user does."""
        if self.editing.yes or click.confirm(f"{question}?", err=True):
            return True
        say("nothing was done")
        return False

    def edited(self, text: str, changes: Mapping[str, Value]) -> str:
        """The text with the changes. Raises PaiError where it is written so that no command edits it."""
        try:
            return changed(text, self.name, changes)
        except EditError as error:
            where = f"{self.editing.site_dir / SERVICES}:{error.line}"
            raise refusal(
                "site-file-not-editable", f"{where}: {error.message}", "write its definition in lines of key: value"
            ) from error

    def bring(self, *, final: bool = False) -> int:
        """Brings the cluster to what the grants say; the exit code. final: the control plane is proven, too."""
        return self.runs.run(StorageRotate(storage=self.name, final=final)).exit_code

    def _wait_bound(self) -> None:
        with self.cluster() as cluster:
            for grant in self._mine():
                if grant.current:
                    wait_bound(cluster, grant)

    def _require_gone(self, cluster: ClusterClient, grants: Collection[Grant]) -> None:
        """Raises PaiError for a PVC that a pod still names."""
        claims = sorted({(grant.namespace, grant.claim) for grant in grants})
        refs = [Ref("persistentvolumeclaim", name, namespace) for namespace, name in claims]
        if not _within(lambda: not any(cluster.get(refs)), BIND_S):
            remedy = f"delete the pods that name it, finished ones, too; then pai-install {VERB} {self.name} --finish"
            raise refusal("objects-not-deleted", f"{', '.join(map(str, refs))} does not go", remedy)

    @contextmanager
    def cluster(self) -> Iterator[ClusterClient]:
        """A client, for a while."""
        state = open_state(self.editing.site_dir)
        with self.editing.environment.cluster(self.site(), state, accept_new=False) as cluster:
            yield cluster

    def site(self) -> Site:
        """As it is now."""
        return load_site(self.editing.site_dir).site

    def _mine(self) -> tuple[Grant, ...]:
        return tuple(grant for grant in grants_of(self.site()) if grant.storage.name == self.name)

    def rotation(self) -> StorageRotation:
        """Where it stands."""
        return read_rotations(self.editing.site_dir)[self.name]

    def _save(self, rotation: StorageRotation) -> int:
        self.save(rotation)
        return ExitCode.OK

    def save(self, rotation: StorageRotation) -> None:
        """Raises PaiError while another run is at work."""
        folder = self.editing.site_dir
        with site_lock(open_state(folder).path, VERB):
            save_rotations(folder, {**read_rotations(folder), self.name: rotation})


def _idle(rotation: StorageRotation, users: Collection[Consumer]) -> list[OldGeneration]:
    """The older generations that none of the pods uses."""
    used = {one.claim for one in users}
    return [old for old in rotation.older if old.claim not in used or not old.claimed]


def _within(done: Callable[[], bool], limit_s: float) -> bool:
    deadline = time.monotonic() + limit_s
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True
