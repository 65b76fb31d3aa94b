"""The workflow of a storage's rotation. It keeps its state with the storage. Each stage may run again after a kill."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from pai_install.app.context import App
from pai_install.app.rotations.storage_copy import CopyError, StorageCopier
from pai_install.app.rotations.storage_pods import becomes_true, delete_pods, notify_pods, pods_of_old_generations
from pai_install.app.site_edit import checked_site
from pai_install.checks.verdict import Verdict
from pai_install.cluster.client import ClusterClient, Patch, Select
from pai_install.errors import ExitCode, PaiError
from pai_install.kube.model import Ref
from pai_install.operations.storage_rotate import StorageRotate
from pai_install.operations.storage_test import StorageTest
from pai_install.report.model import Outcome
from pai_install.report.storage import STORAGE_LABEL, Consumer
from pai_install.run.services_file import services_file, write_services
from pai_install.run.workflow import StageFailed, StageStopped, Workflow, WorkflowStage, WorkflowStore, never_done
from pai_install.site.load import SERVICES
from pai_install.site.model import Site
from pai_install.site.rotations import OldGeneration, StorageRotationState, Value, read_rotations, save_rotations
from pai_install.site.services.storages import StorageEntry
from pai_install.site_edit.spans import EditError
from pai_install.site_edit.storages import changed
from pai_install.storage import rotation as transitions
from pai_install.storage.compile import grants_of
from pai_install.storage.copying import CopyRoute, copy_route
from pai_install.storage.model import Grant
from pai_install.storage.place import place
from pai_install.system.words import plural

VERB = "storage rotate"
KINDS = ("persistentvolumeclaims", "persistentvolumes", "secrets")
BIND_S = 60.0
_FINAL = (ExitCode.STEP_FAILED, ExitCode.VERIFICATION_FAILED)


class StorageRotation(WorkflowStore[StorageRotationState]):
    """The rotation of one storage. emergency: end the pods that use the old generation. timeout_s: for pods to end."""

    def __init__(self, app: App, name: str, *, emergency: bool, timeout_s: int) -> None:
        self._app = app
        self.name = name
        self._emergency = emergency
        self._timeout_s = timeout_s

    # the state

    def read(self) -> StorageRotationState:
        """The state now."""
        return read_rotations(self._app.site_dir)[self.name]

    def save(self, state: StorageRotationState) -> None:
        """Raises PaiError while another process has the site's lock."""
        with self._app.hold(VERB):
            save_rotations(self._app.site_dir, {**read_rotations(self._app.site_dir), self.name: state})
        self._app.reload()

    def is_rolling_back(self) -> bool:
        """Whether an earlier process began to roll back."""
        return self.read().undoing

    def start_rollback(self) -> None:
        """New jobs use the old generation from now on."""
        self.save(transitions.rolling_back(self.read()))

    def finish_rollback(self) -> None:
        """The old generation is the newest again."""
        self.save(transitions.rolled_back(self.read()))
        self._app.notify(f"{self.name} is {place(entry_of(self._app.site, self.name))} again")
        self._apply(final=True)

    # the stages

    def advance(self) -> int:
        """Every stage that is left. The exit code."""
        return Workflow(self.stages(self.read()), self, self._app.frontend.notify).advance()

    def stages(self, state: StorageRotationState) -> tuple[WorkflowStage[StorageRotationState], ...]:
        """The stages of a rotation with this state. A claim that keeps its name is blocked until the new one works."""
        claim, old = state.claim, state.older[-1].claim if state.older else state.claim
        copies = bool(state.older) and state.older[-1].due
        compare = "Copy what changed since the first copy, and compare every byte"
        found = []
        if copies:
            found.append(self._stage("copy", "Copy the data to the new place with rsync while jobs run", self._copy))
        found.append(self._stage("update-config", f"Update {SERVICES}", self._update_config, undo=self._restore_config))
        if state.same_name:
            ended = "End the pods" if self._emergency else "Wait for the pods"
            wait = f"{ended} that use it, at most {self._timeout_s} s; roll back where one is left"
            block = f"Block {claim} for new pods"
            found.append(self._stage("block-claim", block, self._block_claim, undo=self._restore_claim))
            found.append(self._stage("release-claim", wait, self._release_claim))
            if copies:
                found.append(self._stage("copy-rest", compare, self._copy_rest))
            take = f"Delete the PVC {claim}; its PV and the data stay"
            found.append(self._stage("take-claim", take, self._take_claim))
        apply = f"Create PV, PVC {claim}, and Secret for each group, and mount them on every worker"
        found.append(self._stage("verify", apply, self._create_generation, self._verify, self._remove_generation))
        if state.same_name:
            found.append(self._stage("unblock-claim", f"Unblock {claim} for new pods", self._unblock_claim))
        retire = f"Switch new jobs to the claim {claim}, and delete the PVC {old} when no pod uses it"
        if state.same_name:
            retire = "Delete the old PV and Secret"
        elif copies:
            retire = f"{retire} any longer; first {compare[0].lower()}{compare[1:]}"
        # it runs again after its end: a kill may have come between the state and the cluster
        return (*found, WorkflowStage("retire", f"{retire}; keep all data", never_done, self._retire))

    @staticmethod
    def _stage(
        name: str,
        title: str,
        run: Callable[[], int],
        verify: Callable[[], int] | None = None,
        undo: Callable[[], None] | None = None,
    ) -> WorkflowStage[StorageRotationState]:
        return WorkflowStage(name, title, transitions.STAGES[name].done, run, verify, undo)

    def _complete(self, stage: str) -> int:
        """Records that a stage is done."""
        self.save(transitions.STAGES[stage].after(self.read()))
        return ExitCode.OK

    def _copy(self) -> int:
        """Before a job can use the new place."""
        self._copy_data(self.read().older[-1])
        return self._complete("copy")

    def _copy_rest(self) -> int:
        """No pod uses either place."""
        self._copy_data(self.read().older[-1], last=True)
        return self._complete("copy-rest")

    def _copy_data(self, old: OldGeneration, *, last: bool = False, beside: bool = False) -> None:
        """Copies an older generation's data. Raises StageFailed for a copy that cannot succeed."""
        try:
            self.copier().copy(replace(self._route(old), filled=old.filled, last=last, beside=beside))
        except CopyError as error:
            self._app.notify(f"{error.message}\n{error.remedy}")
            raise StageFailed(error.exit_code) from error

    def copier(self) -> StorageCopier:
        """It copies on the workers of the site."""
        site = self._app.site
        image = self._app.environment.image(site, self._app.state, "rsync", self._app.notify)
        workers = tuple(machine.hostname for machine in site.workers)
        return StorageCopier(self._app, workers, image, f"{VERB} {self.name}")

    def _route(self, old: OldGeneration) -> CopyRoute:
        """From an older generation to the newest, which the site's file may not define yet."""
        state, site = self.read(), self._app.site
        if state.changes is not None:
            site = checked_site(self._app, self._app.loaded, self.edited(self.text(), state.changes))
        group = next((grant for grant in self._grants() if grant.current), None)
        if group is None:
            raise refusal(
                "storage-of-no-group", f"{self.name} is granted to no group", "grant it, or use --finish --no-copy"
            )
        grant = replace(group, storage=old.entry, generation=old.generation)
        return copy_route(grant, entry_of(site, self.name), state.generation)

    def _update_config(self) -> int:
        """Writes the changes into the site's file. Other edits of that file stay."""
        state = self.read()
        with self._app.hold(VERB):
            before = self.text()
            after = self.edited(before, state.changes or {})
            checked_site(self._app, self._app.loaded, after)
            write_services(services_file(self._app.site_dir), after)
        # A stage that runs again finds its own change. Then only the state knows the text before it.
        first = state.before if before == after else before
        self.save(transitions.changed(state, before=first, after=after))
        return self._complete("update-config")

    def _restore_config(self) -> None:
        state, file = self.read(), services_file(self._app.site_dir)
        old = state.older[-1].entry
        with self._app.hold(VERB):
            # The old text would overwrite an edit that someone made meanwhile.
            if self.text() == state.after:
                write_services(file, state.before)
        if entry_of(self._app.reload(), self.name) != old:
            raise refusal(
                "site-file-changed-meanwhile",
                f"{file} was edited meanwhile",
                f"define {self.name} as {place(old)} there; then run pai-install {VERB} {self.name} --finish",
            )

    def _block_claim(self) -> int:
        # The state is written first, so that after a kill any apply brings the cluster to it.
        self._complete("block-claim")
        return self._apply()

    def _release_claim(self) -> int:
        """Kubernetes keeps a PVC for pods that ended, too: they are deleted."""
        self._apply()
        if not self._wait_for_pods():
            raise StageFailed(ExitCode.PREFLIGHT_FAILED)
        delete_pods(self._app, self.pods(finished=True))
        return self._complete("release-claim")

    def _take_claim(self) -> int:
        """The old PVC goes. Its PV stays, with the data. The new PVC comes under its name."""
        self._apply()
        claim = self.read().claim
        self._require_deleted([grant for grant in self._grants() if grant.claim == claim])
        return self._complete("take-claim")

    def _create_generation(self) -> int:
        code = self._app.run_agreed(StorageRotate(storage=self.name)).exit_code
        if code:
            # After a lost connection the same command can go on, so only a final failure rolls back.
            raise (StageFailed if code in _FINAL else StageStopped)(code)
        self._wait_until_bound()
        return ExitCode.OK

    def _verify(self) -> int:
        outcome = self._app.run_agreed(StorageTest(storages=(self.name,), all_grants=True))
        if not passes(outcome):
            code = outcome.exit_code or ExitCode.VERIFICATION_FAILED
            raise (StageFailed if code in _FINAL else StageStopped)(code)
        return self._complete("verify")

    def _remove_generation(self) -> None:
        """An apply that failed halfway may have left objects without a record."""
        self._apply()
        newest = f"{STORAGE_LABEL}={self.name},pai-install/generation={self.read().generation}"
        self._app.cluster.delete_selected(Select(KINDS, labels=newest))

    def _restore_claim(self) -> None:
        """The old generation gets its PVC back. Its PVs accept a new claim of that name."""
        if not self.read().older[-1].claimed:
            self._apply()
            old = [grant for grant in self._grants() if grant.current]
            self._require_deleted(old)
            # A released PV has the uid of its old claim, and binds no other one. Without the uid, a claim of the name
            # binds.
            unbound = {"spec": {"claimRef": {"uid": None, "resourceVersion": None}}}
            self._app.cluster.patch([Patch(Ref("persistentvolume", grant.volume), unbound) for grant in old])
        self.save(transitions.claim_restored(self.read()))
        self._apply()
        self._wait_until_bound()

    def _unblock_claim(self) -> int:
        self._complete("unblock-claim")
        return self._apply()

    def _retire(self) -> int:
        """Removes generations that no pod uses. Those in use stay for `--finish`."""
        if self._emergency:
            self._end_all_pods()
        copied = self._last_copies()
        pods, state = self.pods(), self.read()
        if idle := _idle(state, pods):
            self.save(transitions.without_generations(state, [old.generation for old in idle]))
        code: int = self._app.run_agreed(StorageRotate(storage=self.name, final=True)).exit_code
        self._app.notify(f"new jobs use the claim {state.claim}")
        if pods:
            notify_pods(self._app, pods)
            self._app.notify(f"the old generation stays until they end; then: pai-install {VERB} {self.name} --finish")
        return code or copied

    def _last_copies(self) -> int:
        """Copies changes of old folders without pods, and closes these folders to new pods."""
        for old in _idle(self.read(), self.pods() if self._due() else ()):
            if not old.due:
                continue
            self._app.notify(f"\nThe last copy of generation {old.generation}")
            self._change_old(old, closed=True)
            self._apply()
            if any(pod.claim == old.claim for pod in self.pods()):  # it came meanwhile
                continue
            try:
                self._copy_data(old, last=True, beside=True)
            except StageFailed as failure:  # the new generation works: it stays, and so does the old one
                return failure.exit_code
            self._change_old(old, copying="done")
        return ExitCode.OK

    def _change_old(self, old: OldGeneration, **fields: object) -> None:
        self.save(transitions.with_old(self.read(), old.generation, **fields))

    def _due(self) -> bool:
        return any(old.due for old in self.read().older)

    # the cluster

    def _apply(self, *, final: bool = False) -> int:
        """Applies the grants. final: the control plane is verified, too. Raises StageStopped."""
        code = self._app.run_agreed(StorageRotate(storage=self.name, final=final)).exit_code
        if code:
            raise StageStopped(code)
        return code

    def _wait_until_bound(self) -> None:
        for grant in self._grants():
            if grant.current:
                wait_until_bound(self._app.cluster, grant)

    def _require_deleted(self, grants: Collection[Grant]) -> None:
        """Raises PaiError for a PVC that a pod still names."""
        claims = sorted({(grant.namespace, grant.claim) for grant in grants})
        refs = [Ref("persistentvolumeclaim", name, namespace) for namespace, name in claims]
        if not becomes_true(lambda: not any(self._app.cluster.get(refs)), BIND_S):
            raise refusal(
                "objects-not-deleted",
                f"cannot delete {', '.join(map(str, refs))}: a pod names it",
                f"delete its pods, also finished ones; then run pai-install {VERB} {self.name} --finish",
            )

    def _wait_for_pods(self) -> bool:
        """Whether no pod uses the old generation within the timeout. In an emergency they are ended."""
        pods = self.pods()
        if pods and self._emergency:
            delete_pods(self._app, pods)
        if pods:
            self._app.notify(f"waiting for {plural(len(pods), 'pod')}, at most {self._timeout_s} s")
        return becomes_true(lambda: not self.pods(), self._timeout_s)

    def _end_all_pods(self) -> None:
        """Blocks or deletes the old claims, and ends the pods that use them."""
        pods = self.pods()
        if not pods or not self._app.confirm(f"end {plural(len(pods), 'pod')} that use the old generation"):
            return
        if self._due():  # the claims stay until the last copy
            for old in self.read().older:
                self._change_old(old, closed=True)
                self._apply()
        else:
            # A claim that is being deleted takes no new pod, and goes with the end of its last one.
            for namespace, name in {(pod.namespace, pod.claim) for pod in pods}:
                self._app.cluster.delete([Ref("persistentvolumeclaim", name, namespace)])
        delete_pods(self._app, pods)
        if not becomes_true(lambda: not any(pod.node for pod in self.pods()), self._timeout_s):
            raise refusal(
                "pods-not-ended",
                "cannot end the pods in time",
                "look at their nodes; then use --finish",
            )
        delete_pods(self._app, self.pods())  # those that never started

    def pods(self, *, finished: bool = False) -> tuple[Consumer, ...]:
        """Returns pods that use a replaced generation."""
        return pods_of_old_generations(self._app, self.name, finished=finished)

    def _grants(self) -> tuple[Grant, ...]:
        return tuple(grant for grant in grants_of(self._app.site) if grant.storage.name == self.name)

    # the site's file

    def text(self) -> str:
        """The text of services-configuration.yaml."""
        return services_file(self._app.site_dir).read_bytes().decode()

    def edited(self, text: str, changes: Mapping[str, Value]) -> str:
        """The text with the changes. Raises PaiError where a command cannot edit the definition."""
        try:
            return changed(text, self.name, changes)
        except EditError as error:
            raise refusal(
                "site-file-not-editable",
                f"{self._app.site_dir / SERVICES}:{error.line}: {error.message}",
                "write the definition in lines of key: value",
            ) from error


def wait_until_bound(cluster: ClusterClient, grant: Grant) -> None:
    """Waits at most a minute. A test shows whether it works."""
    claim = Ref("persistentvolumeclaim", grant.claim, grant.namespace)
    cluster.wait([claim], "jsonpath={.status.phase}=Bound", BIND_S)


def passes(outcome: Outcome) -> bool:
    """Whether the test passes on every worker."""
    failed = any(finding.verdict in (Verdict.FAIL, Verdict.UNKNOWN) for finding in outcome.findings)
    return outcome.exit_code == ExitCode.OK and not failed


def entry_of(site: Site, name: str) -> StorageEntry:
    """The definition in the site's files."""
    return next(entry for entry in site.services.storages or () if entry.name == name)


def refusal(code: str, message: str, remedy: str) -> PaiError:
    """Returns an error that the user must resolve first."""
    return PaiError(message, code=code, remedy=remedy, exit_code=ExitCode.PREFLIGHT_FAILED)


def _idle(state: StorageRotationState, pods: Collection[Consumer]) -> list[OldGeneration]:
    """The older generations that none of the pods uses."""
    used = {pod.claim for pod in pods}
    return [old for old in state.older if old.claim not in used or not old.claimed]
