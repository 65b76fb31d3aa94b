"""Rotations of the credentials between machines, cache, and component store, and of the content's location."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pai_install.app.context import App, RunOptions
from pai_install.app.rotations.upstream import ANSWERED, VERB, has_failures, rotate_upstream
from pai_install.errors import ExitCode, PaiError
from pai_install.operations.operation import Operation
from pai_install.operations.registry_copy import RegistryCopy
from pai_install.operations.registry_inspect import Image, RegistryTest
from pai_install.operations.registry_rotate import RegistryRotate, behind, unsettled
from pai_install.operations.verify import Verify
from pai_install.plan.model import Plan
from pai_install.registry.compile import registries_of, served_names
from pai_install.registry.content import Content, content_of, place_of, read_note
from pai_install.registry.identity import Identity, open_identity, save, with_content_kept, without_move
from pai_install.registry.rotation import STAGES, Change, RotationStage, Subject, position, unfinished
from pai_install.run.pipeline import Prepared
from pai_install.run.workflow import (
    MachinesMissing,
    StageFailed,
    StageStopped,
    Workflow,
    WorkflowEvent,
    WorkflowStage,
    WorkflowStore,
)
from pai_install.site.model import Site
from pai_install.system.parameters import Parameter

_RECORD = "docker_cache"


class RotateRegistry(BaseModel):
    """The rotation: one of the first five. finish: only complete an interrupted rotation."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    credentials: bool = Field(default=False, description="Replace the login of machines at the cache.")
    ca: bool = Field(default=False, description="Replace the certificate authority of cache and component store.")
    endpoint: bool = Field(default=False, description="Move the cache to the new port in the site.")
    backend: bool = Field(default=False, description="Move the cache's content to the new storage in the site.")
    upstream: Annotated[str, Parameter(metavar="NAME")] = Field(
        "", description="Use the new entry of this upstream registry in the site."
    )
    finish: bool = Field(default=False, description="Only complete a rotation with pending machines.")
    images: Annotated[tuple[Image, ...], Parameter(flag="--image", metavar="IMAGE")] = Field(
        (), description="An image that every machine pulls as a test. Repeatable."
    )

    @model_validator(mode="after")
    def _names_one(self) -> RotateRegistry:
        if len(self.subjects) + bool(self.upstream) != 1:
            raise ValueError(f"name one: {', '.join(f'--{subject}' for subject in STAGES)} or --upstream NAME")
        if self.finish and self.upstream:
            raise ValueError("--finish is not for --upstream, which waits for no machine")
        return self

    @property
    def subjects(self) -> tuple[Subject, ...]:
        """The rotated credentials or location, () for an upstream."""
        return tuple(subject for subject in STAGES if getattr(self, subject))


def rotate_registry(app: App, request: RotateRegistry, options: RunOptions) -> int:
    """Rotates until the end, or until a missing machine must have a stage. The exit code."""
    if request.upstream:
        return rotate_upstream(app, request.upstream, request.images, options)
    (subject,) = request.subjects
    RegistryRotate(subject=subject).require(app.site)
    if not options.check:
        app.frontend.require_answers()
    if not app.state.registry.exists():
        raise PaiError(
            "cannot rotate the registry: this host lacks the logins and the authority of the cluster",
            code="site-authority-unknown",
            remedy="run pai-install plan, which copies them from the cluster, then repeat the command",
            exit_code=ExitCode.PREFLIGHT_FAILED,
        )
    rotation = _Rotation(app, subject, request.images)
    started = rotation.unfinished
    finish = request.finish or subject == "endpoint"  # a port is rotated only if the site names another one
    if started or not finish:
        rotation.announce()
    if options.check:
        return ExitCode.OK
    if not app.confirm("rotate"):
        return ExitCode.PREFLIGHT_FAILED
    with app.hold(VERB):
        return rotation.finish() if finish and not started else rotation.advance()


class _Rotation(WorkflowStore[Identity]):
    def __init__(self, app: App, subject: Subject, images: tuple[str, ...]) -> None:
        self._app = app
        self._subject = subject
        # a failing mirror of the site's own says nothing about the cache's new login or authority
        self._test = RegistryTest(images=images, cached=True, store=subject == "ca")
        self._observed: Plan | None = None

    def read(self) -> Identity:
        """The identity of the registries, which has the position of the rotation."""
        return open_identity(self._app.state.registry, served_names(self._app.site), datetime.now(UTC))

    @property
    def unfinished(self) -> bool:
        """Whether a rotation was started and not completed."""
        return self._subject in unfinished(self.read())

    def announce(self) -> None:
        """Says the stages and their state."""
        current = position(self.read(), self._subject) if self.unfinished else -1
        for number, stage in enumerate(STAGES[self._subject]):
            mark = "in progress" if number == current else "done" if number < current else "to do"
            waits = "; waits for every machine" if stage.requires_all_machines else ""
            test = "; then every machine tests the registries" if stage.verifies else ""
            self._app.notify(f"{number + 1}. {stage.title}{waits}{test} ({mark})")
        docker = "Docker reloads its configuration" if self._subject == "endpoint" else "Docker is not reloaded"
        self._app.notify(f"no container restarts; {docker}")

    def finish(self) -> int:
        """Brings the last stage to machines that lack it: the identity does not show an interrupted last stage."""
        if self._subject == "backend":
            self._app.notify("no rotation of the backend is unfinished")
            return ExitCode.OK
        plan = self._plan()
        self._app.require_leader(plan)
        if not unsettled(plan, self._subject):
            self._app.notify(_nothing_to_finish(self._subject, self.read()))
            return ExitCode.OK
        return self._app.run_agreed(RegistryRotate(subject=self._subject)).exit_code or self._verify_cluster()

    def advance(self) -> int:
        """Every stage that is left, and the verification of the cluster."""
        started = self.unfinished
        if self._subject == "backend" and not self._start_move():
            return ExitCode.OK
        # The first stage runs whole phases, which would apply other differences along with it.
        if not started:
            self._require_converged()
        identity = self.read()
        stages = tuple(self._stage(number, stage) for number, stage in enumerate(STAGES[self._subject]))
        code = Workflow(stages, self, self._notify, lambda: behind(self._plan(), self._subject)).advance()
        if code not in ANSWERED or self.unfinished:
            return code
        self._notify_end(identity.content or identity.left, code)
        return code or self._verify_cluster()

    def _verify_cluster(self) -> int:
        return self._app.run_agreed(Verify()).exit_code

    def _plan(self) -> Plan:
        """The plan of `apply`, observed again after each change."""
        self._observed = self._observed or self._app.dry_run(verb=VERB).plan
        return self._observed

    def _require_converged(self) -> None:
        if unsettled(self._plan(), self._subject):
            finish = f"run apply. If the end of a rotation was interrupted, run {VERB} --{self._subject} --finish"
            again = "run apply, which leaves the content where it is; then run the same command again"
            raise PaiError(
                "cannot rotate the registry: the component store, the cache, or a machine differs from the site",
                code="rotation-site-not-applied",
                remedy=again if self._subject == "backend" else finish,
            )

    def _stage(self, number: int, stage: RotationStage) -> WorkflowStage[Identity]:
        subject, undo = self._subject, stage.undo
        return WorkflowStage(
            stage.name,
            stage.title,
            lambda identity: position(identity, subject) > number,
            lambda: self._run(stage),
            (lambda: self._perform(stage, self._test)) if stage.verifies else None,
            (lambda: self._undo(stage, undo)) if undo is not None else None,
            stage.requires_all_machines,
        )

    def _run(self, stage: RotationStage) -> int:
        self._app.require_leader(self._plan())
        # The file changes first. After a kill, each apply brings this stage to the machines.
        self._edit(stage.change)
        code: int = ExitCode.OK
        if stage.phases:
            code = self._perform(stage, RegistryRotate(subject=self._subject, phases=stage.phases))
        if stage.copies:
            code = self._perform(stage, RegistryCopy(in_use=bool(stage.phases)))
        return code

    def _perform(self, stage: RotationStage, operation: Operation) -> int:
        """A missing machine stops only its own part, unless the content is copied."""
        # The operation changes machines, so the last observation no longer holds.
        self._observed = None
        outcome = self._app.run_agreed(operation)
        # A silent machine is no failure of the test. It gets the new value with the next apply.
        if operation is self._test:
            good = outcome.exit_code is not ExitCode.STEP_FAILED and not has_failures(outcome)
        else:
            good = outcome.exit_code in (ANSWERED if not stage.copies else (ExitCode.OK,))
        if outcome.interrupted:
            raise StageStopped(outcome.exit_code)
        if good:
            return outcome.exit_code
        code = ExitCode.VERIFICATION_FAILED if outcome.exit_code in ANSWERED else outcome.exit_code
        if stage.undo is not None:
            raise StageFailed(code)
        if stage.copies:
            self._app.notify("the cache is unchanged; repair the cause and run the same command again")
        raise StageStopped(code)

    def _undo(self, stage: RotationStage, change: Change) -> None:
        self._edit(change)
        self._app.run_agreed(RegistryRotate(subject=self._subject, phases=stage.phases))

    def _edit(self, change: Change) -> None:
        save(self._app.state.registry, change(self.read(), datetime.now(UTC)))

    def _notify(self, event: WorkflowEvent) -> None:
        self._app.frontend.notify(event)
        if isinstance(event, MachinesMissing):
            self._app.notify("what they use now stays valid until then")
            self._app.notify(f"when they answer again: pai-install {VERB} --{self._subject} --finish")
            self._app.notify("`absent: true` in layout.yaml leaves a machine out")

    def _notify_end(self, old: Content | None, code: int) -> None:
        site = self._app.site
        if self._subject == "backend" and old is not None:
            self._app.notify(_old_content_notice(old, desired_place(site), site.control_planes[0].hostname))
        elif code == ExitCode.OK:
            self._app.notify("machines and servers use the new alone")
        else:
            self._app.notify("machines that did not answer get the new with the next apply")

    def _start_move(self) -> bool:
        """Records the place that the cache uses, so that only a stage changes it. False where nothing is to move."""
        identity, desired = self.read(), desired_place(self._app.site)
        if self.unfinished:
            if desired not in (identity.content, identity.left):
                return True
            self._edit(lambda now, _when: without_move(now))
            self._app.notify(f"the site's files name {desired} again: the content stays, and apply does the rest")
            return False
        used = _used_place(self._app, self._app.dry_run(verb=VERB))
        if used == desired:
            self._app.notify(f"the cache keeps its content in {used} already, as the site's files say: nothing to move")
            return False
        self._edit(lambda now, _when: with_content_kept(now, used))
        return True


def _nothing_to_finish(subject: Subject, identity: Identity) -> str:
    if subject != "endpoint":
        return f"no rotation of the {subject} is unfinished"
    where = "docker-cache: service_nodeport in services-configuration.yaml"
    return f"every machine uses port {identity.used_port}, as the site says; {where} names another one"


def desired_place(site: Site) -> Content:
    """The place of the cache's content in the site's files. Raises PaiError for a site without a cache."""
    cache = registries_of(site).cache
    if cache is None:
        raise PaiError(
            "cannot rotate the registry cache: this site has none",
            code="registry-cache-missing",
            exit_code=ExitCode.USAGE,
        )
    return content_of(cache)


def _used_place(app: App, prepared: Prepared) -> Content:
    """The place that the cache of the first control plane uses now. Raises PaiError where that is unknown."""
    app.require_leader(prepared.plan)
    leader = app.site.control_planes[0].hostname
    record = prepared.observation.machines[leader].roles.get(_RECORD)
    used = read_note(record.notes.get("content", "")) if record else None
    if used is None:
        raise PaiError(
            f"cannot move the content of the cache: {leader} has no record of its current place",
            code="registry-record-missing",
            remedy=(
                "write the current place into config.yaml and run pai-install apply. Then write the new "
                "place and repeat the command"
            ),
        )
    cache = registries_of(app.site).cache
    if cache is not None:
        place_of(cache, used)  # raises where the site lacks the key of its account
    return used


def _old_content_notice(old: Content, new: Content, leader: str) -> str:
    remove = f"on {leader}: sudo rm -r {old.folder}" if old.folder else "delete the container if nothing else uses it"
    return f"the cache keeps its content in {new}; the old content is still in {old}\nto remove it: {remove}"
