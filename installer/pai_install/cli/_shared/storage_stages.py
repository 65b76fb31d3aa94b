"""The stages of a storage's rotation: its state, the site's file, and what is brought to the cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import click

from pai_install.checks.verdict import Verdict
from pai_install.cli._shared.act import How
from pai_install.cli._shared.runs import Runs
from pai_install.cli._shared.site_edit import Editing, checked_site, write_services
from pai_install.cli._shared.tell import say
from pai_install.cluster.client import ClusterClient, Patch, Select
from pai_install.cluster.model import Ref
from pai_install.cluster.read import mounts
from pai_install.errors import ExitCode, PaiError
from pai_install.operations.storage_rotate import StorageRotate
from pai_install.operations.storage_test import StorageTest
from pai_install.report.model import Outcome
from pai_install.report.storage import STORAGE_LABEL, Consumer, consumers_of, consumers_text
from pai_install.run.lock import site_lock
from pai_install.run.state import open_state
from pai_install.site.edit.spans import EditError
from pai_install.site.edit.storages import changed
from pai_install.site.load import SERVICES, load_site
from pai_install.site.model import Site
from pai_install.site.rotations import StorageRotation, Value, read_rotations, save_rotations
from pai_install.site.services.storages import StorageEntry
from pai_install.storage import rotation as transitions
from pai_install.storage.compile import grants_of
from pai_install.storage.model import Grant
from pai_install.storage.place import place
from pai_install.storage.rotation import Stage, stage_of
from pai_install.system.words import plural

VERB = "storage rotate"
KINDS = ("persistentvolumeclaims", "persistentvolumes", "secrets")
BIND_S = 60.0
_POLL_S = 3.0


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked for. changes: keys of the definition; finish: only go on with what was begun.

    same_name: the claim keeps its name. emergency: pods that use the old generation are ended. timeout_s: how long to
    wait for pods.
    """

    name: str
    changes: Mapping[str, Value]
    finish: bool = False
    same_name: bool = False
    emergency: bool = False
    timeout_s: float = 600


class Stages:
    """What is left of one rotation. Each stage may be interrupted, and is then done again."""

    def __init__(self, editing: Editing, wish: Wish) -> None:
        self.editing = editing
        self.wish = wish
        self.name = wish.name
        self.runs = Runs(editing.site_dir, editing.environment, How(yes=True), VERB)
        self._stages: Mapping[Stage, Callable[[], int]] = {
            "take back": self._take_back,
            "write": self._write,
            "close": self._close,
            "empty": self._empty,
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
                raise refusal(f"{file} was edited meanwhile", remedy)
        self._save(transitions.undone(rotation))
        say(f"{self.name} is {place(old)} again")
        return self.bring(final=True)

    def _retire(self) -> int:
        """What no pod uses goes, and what one does stays; in an emergency no pod does."""
        rotation = self.rotation()
        if self.wish.emergency:
            self._end_all()
        users = self.users()
        used = {one.claim for one in users}
        idle = [old.generation for old in rotation.older if old.claim not in used or not old.claimed]
        if idle:
            self._save(transitions.retired(rotation, idle))
        code = self.bring(final=True)
        say(f"new jobs use the claim {rotation.claim}")
        if users:
            tell_users(users)
            say(f"what they use stays until they end; then: pai-install {VERB} {self.name} --finish")
        return code

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
        with self.cluster() as cluster:
            for namespace, name in {(one.namespace, one.claim) for one in users}:
                cluster.delete([Ref("persistentvolumeclaim", name, namespace)])
        self._end(users)
        if not _within(lambda: not any(one.node for one in self.users()), self.wish.timeout_s):
            raise refusal("pods do not end", "look at their nodes; then the same command with --finish")
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
            raise refusal(f"{where}: {error.message}", "write its definition in lines of key: value") from error

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
            raise refusal(f"{', '.join(map(str, refs))} does not go", remedy)

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


def _within(done: Callable[[], bool], limit_s: float) -> bool:
    deadline = time.monotonic() + limit_s
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def wait_bound(cluster: ClusterClient, grant: Grant) -> None:
    """Waits a while; whether it came to it is for a trial to say."""
    claim = Ref("persistentvolumeclaim", grant.claim, grant.namespace)
    cluster.wait([claim], "jsonpath={.status.phase}=Bound", BIND_S)


def tell_users(users: Collection[Consumer]) -> None:
    """Says which pods they are, and on which nodes."""
    nodes = sorted({one.node for one in users if one.node})
    say(f"\n{consumers_text(users)}on {', '.join(nodes) or 'no node yet'}\n" if users else "\nno pod uses it now\n")


def good(outcome: Outcome) -> bool:
    """Whether every worker could."""
    failed = any(found.verdict in (Verdict.FAIL, Verdict.UNKNOWN) for found in outcome.findings)
    return outcome.exit_code == ExitCode.OK and not failed


def entry_of(site: Site, name: str) -> StorageEntry:
    """The definition in the site's files."""
    return next(one for one in site.services.storages or () if one.name == name)


def refusal(message: str, remedy: str) -> PaiError:
    """What the user has to settle first."""
    return PaiError(message, remedy=remedy, exit_code=ExitCode.PREFLIGHT_FAILED)
