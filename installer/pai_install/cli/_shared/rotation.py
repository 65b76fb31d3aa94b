"""A rotation of the registries' identity from stage to stage, each a run of its own."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import click

from pai_install.checks.verdict import Verdict
from pai_install.cli._shared.act import How, require_answer
from pai_install.cli._shared.moving import came_back, farewell, used_place, wanted_place
from pai_install.cli._shared.runs import Runs
from pai_install.cli._shared.tell import say
from pai_install.errors import ExitCode, PaiError
from pai_install.operations.operation import Operation
from pai_install.operations.registry_copy import RegistryCopy
from pai_install.operations.registry_look import RegistryTest
from pai_install.operations.registry_rotate import RegistryRotate, behind, unsettled
from pai_install.operations.verify import Verify
from pai_install.registry.compile import served_names
from pai_install.registry.identity import Identity, open_identity, save, with_content_kept, without_move
from pai_install.registry.rotation import STAGES, Change, RotationStage, Subject, position, unfinished
from pai_install.report.model import Outcome
from pai_install.run.environment import Environment
from pai_install.run.lock import site_lock
from pai_install.run.state import open_state
from pai_install.site.load import load_site

VERB = "registry rotate"
_SUBJECTS = (
    click.option("--credentials", is_flag=True, help="The login by which machines reach the cache."),
    click.option("--ca", is_flag=True, help="The authority whose certificates machines trust."),
    click.option("--endpoint", is_flag=True, help="The cache's port, after it was changed in the site."),
    click.option("--backend", is_flag=True, help="Where the content is kept, after it was changed in the site."),
    click.option("--upstream", default="", metavar="NAME", help="A registry, after its entry was changed in the site."),
)


def rotate(
    site_dir: Path, subject: Subject, images: tuple[str, ...], environment: Environment, how: How, *, finish: bool
) -> int:
    """Takes the rotation to its end, or as far as machines that do not answer let it; the exit code.

    finish: go on with one that was begun, and begin none. A port is only rotated where the site names another one.
    """
    RegistryRotate(subject=subject).require(load_site(site_dir).site)
    require_answer(how)
    _require_known(site_dir)
    identity = _identity(site_dir)
    begun = subject in unfinished(identity)
    finish = finish or subject == "endpoint"
    if begun or not finish:
        _tell(identity, subject)
    if how.check:
        return ExitCode.OK
    if not how.yes and not click.confirm("rotate?", err=True):
        say("nothing was done")
        return ExitCode.PREFLIGHT_FAILED
    runs = Runs(site_dir, environment, how, VERB)
    return runs.ended(_Rotation(site_dir, subject, images, runs).go_on(finish=finish and not begun))


class _Rotation:
    def __init__(self, site_dir: Path, subject: Subject, images: tuple[str, ...], runs: Runs) -> None:
        self._site_dir = site_dir
        self._subject = subject
        # a mirror of the site's own that fails says nothing of the cache's new login or authority
        self._test = RegistryTest(images=images, cached=True, store=subject == "ca")
        self._runs = runs

    def go_on(self, *, finish: bool) -> int:
        """Every stage that is left.

        finish: bring machines to the last stage where the file is past it.
        """
        return self._last_stage() if finish else self._stages()

    def _last_stage(self) -> int:
        """The file has one login and one authority; a run that was interrupted may not have brought it everywhere."""
        if self._subject == "backend":
            say("no rotation of the backend is unfinished")
            return ExitCode.OK
        plan = self._runs.standing().plan
        self._runs.require_leader(plan)
        if not unsettled(plan, self._subject):
            say(_nothing_to_finish(self._subject, _identity(self._site_dir)))
            return ExitCode.OK
        return self._runs.run(RegistryRotate(subject=self._subject)).exit_code or self._runs.run(Verify()).exit_code

    def _stages(self) -> int:
        subject, begun = self._subject, _identity(self._site_dir)
        if subject == "backend" and not self._move():
            return ExitCode.OK
        identity, plan = _identity(self._site_dir), self._runs.standing().plan
        if subject not in unfinished(begun) and unsettled(plan, subject):
            finish = f"run apply first; {VERB} --{subject} --finish where the end of a rotation was interrupted"
            remedy = "run apply first, which leaves the content where it is; then the same command again"
            raise PaiError(
                "the component store, the cache or some machines differ from the site",
                code="rotation-site-not-applied",
                remedy=remedy if subject == "backend" else finish,
            )
        code: int = ExitCode.OK
        for number, stage in enumerate(STAGES[subject][position(identity, subject) :]):
            if number:  # the stage before has changed machines
                plan = self._runs.standing().plan
            if stage.everyone and (waiting := behind(plan, subject)):
                return self._wait(waiting)
            self._runs.require_leader(plan)
            code = self._stage(stage)
            if code not in (ExitCode.OK, ExitCode.UNREACHABLE):
                return code
        self._say_end(identity, code)
        return code or self._runs.run(Verify()).exit_code

    def _say_end(self, identity: Identity, code: int) -> None:
        old, site = identity.content or identity.left, load_site(self._site_dir).site
        if self._subject == "backend" and old is not None:
            say(farewell(old, wanted_place(site), site.control_planes[0].hostname))
        elif code == ExitCode.OK:
            say("machines and what serves them have the new alone")
        else:
            say("machines that did not answer get it by apply")

    def _move(self) -> bool:
        """Notes where the content is now, so that nothing but the last stage changes that; False: nothing to move."""
        site, identity = load_site(self._site_dir).site, _identity(self._site_dir)
        begun = "backend" in unfinished(identity)
        if begun and came_back(identity, site):
            _edit(self._site_dir, lambda now, _when: without_move(now))
            say(f"the site's files name {wanted_place(site)} again: nothing is moved, and apply brings the rest")
            return False
        if begun:
            return True
        used = used_place(site, self._runs.standing())
        if used == wanted_place(site):
            say(f"the cache keeps its content in {used} already, as the site's files say: nothing to move")
            return False
        _edit(self._site_dir, lambda now, _when: with_content_kept(now, used))
        return True

    def _stage(self, stage: RotationStage) -> int:
        say(f"\n{stage.title}")
        _edit(self._site_dir, stage.change)
        code: int = ExitCode.OK
        for operation in self._operations(stage):
            outcome = self._runs.run(operation)
            if outcome.interrupted:
                return outcome.exit_code
            if _failed(stage, operation, outcome):
                return self._give_up(stage, outcome)
            code = outcome.exit_code
        return code

    def _operations(self, stage: RotationStage) -> Iterator[Operation]:
        if stage.phases:
            yield RegistryRotate(subject=self._subject, phases=stage.phases)
        if stage.copies:
            yield RegistryCopy(in_use=bool(stage.phases))
        if stage.proves:
            yield self._test

    def _give_up(self, stage: RotationStage, outcome: Outcome) -> int:
        if stage.undo is not None:
            self._take_back(stage, stage.undo)
        elif stage.copies:
            say("the cache goes on as before; run the same command again when that is repaired")
        if outcome.exit_code in (ExitCode.OK, ExitCode.UNREACHABLE):
            return ExitCode.VERIFICATION_FAILED
        return outcome.exit_code

    def _take_back(self, stage: RotationStage, undo: Change) -> None:
        say(f"\nTaking back: {stage.title}")
        _edit(self._site_dir, undo)
        self._runs.run(RegistryRotate(subject=self._subject, phases=stage.phases))

    def _wait(self, waiting: tuple[str, ...]) -> int:
        names = ", ".join(waiting)
        say(f"{names}: without the new yet; the old stays good until then")
        say(f"when they answer again: pai-install {VERB} --{self._subject} --finish")
        say("absent: true in layout.yaml leaves a machine out")
        return ExitCode.UNREACHABLE


def _failed(stage: RotationStage, operation: Operation, outcome: Outcome) -> bool:
    """Whether the stage cannot go on: a machine that does not answer holds up what concerns that one alone."""
    if isinstance(operation, RegistryTest):
        return outcome.exit_code is ExitCode.STEP_FAILED or refused(outcome)
    good = (ExitCode.OK,) if stage.copies else (ExitCode.OK, ExitCode.UNREACHABLE)
    return outcome.exit_code not in good


def _nothing_to_finish(subject: Subject, identity: Identity) -> str:
    if subject != "endpoint":
        return f"no rotation of the {subject} is unfinished"
    where = "docker-cache: service_nodeport in services-configuration.yaml"
    return f"every machine asks at port {identity.used_port}, as the site says; {where} is where it says another one"


def refused(outcome: Outcome) -> bool:
    """Whether a machine that answered could not use a registry."""
    return any(found.verdict is Verdict.FAIL for found in outcome.findings)


def _tell(identity: Identity, subject: Subject) -> None:
    now = position(identity, subject) if subject in unfinished(identity) else -1
    for number, stage in enumerate(STAGES[subject]):
        mark = "going on" if number == now else "done" if number < now else "to do"
        waits = "; waits for every machine" if stage.everyone else ""
        proof = "; then every machine asks the registries" if stage.proves else ""
        say(f"{number + 1}. {stage.title}{waits}{proof} ({mark})")
    reloaded = "Docker is reloaded where the cache is its mirror" if subject == "endpoint" else "Docker is not reloaded"
    say(f"no container restarts; {reloaded}")


def _require_known(site_dir: Path) -> None:
    """Raises PaiError on a dev box that is new to the site: what it would make is none of the cluster's."""
    if not open_state(site_dir).registry.exists():
        raise PaiError(
            "this dev box does not know the logins and the authority that the cluster has",
            code="site-authority-unknown",
            remedy="pai-install plan brings them from the cluster; then the same command",
            exit_code=ExitCode.PREFLIGHT_FAILED,
        )


def _identity(site_dir: Path) -> Identity:
    site = load_site(site_dir).site
    return open_identity(open_state(site_dir).registry, served_names(site), datetime.now(UTC))


def _edit(site_dir: Path, change: Change) -> None:
    """Changes the identity's file while no other run is at work. Raises PaiError while one is."""
    state = open_state(site_dir)
    with site_lock(state.path, VERB):
        save(state.registry, change(_identity(site_dir), datetime.now(UTC)))


def subject_options(verb: Callable[..., int]) -> Callable[..., int]:
    """Adds the options that name what to rotate, of which one must be given.

    The verb gets `subject`, None for an upstream, and `upstream`.
    """

    @functools.wraps(verb)  # with the options that the verb has of its own
    def gathered(*, upstream: str, **others: object) -> int:
        named = [subject for subject in STAGES if others.pop(subject)]
        if len(named) + bool(upstream) != 1:
            words = ", ".join(f"--{subject}" for subject in STAGES)
            raise PaiError(
                f"name one: {words} or --upstream NAME", code="registry-rotate-target-missing", exit_code=ExitCode.USAGE
            )
        return verb(subject=named[0] if named else None, upstream=upstream, **others)

    command: Callable[..., int] = gathered
    for option in reversed(_SUBJECTS):
        command = option(command)
    return command
