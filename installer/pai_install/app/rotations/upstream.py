"""Another account, address, or authority of one upstream registry, as a workflow."""

from __future__ import annotations

import time

from pai_install.app.context import App, RunOptions
from pai_install.checks.verdict import Verdict
from pai_install.documents.problem import YamlPath, dotted
from pai_install.errors import ExitCode
from pai_install.operations.registry_inspect import RegistryTest
from pai_install.operations.registry_rotate import RegistryRotate
from pai_install.operations.registry_upstream import RegistryUpstream
from pai_install.operations.verify import Verify
from pai_install.report.model import Outcome
from pai_install.run.workflow import StageFailed, StageStopped, Workflow, WorkflowStage, WorkflowStore, never_done
from pai_install.site.load import CONFIG, SERVICES, LoadedSite

VERB = "registry rotate"
# the registry caches an upstream's login for a minute (playbooks/filter_plugins/pai_docker_cache.py)
LOGIN_CACHE_S = 60
_SERVER_PHASE, _CLIENT_PHASE = "addons", "registries"
ANSWERED = (ExitCode.OK, ExitCode.UNREACHABLE)


def rotate_upstream(app: App, name: str, images: tuple[str, ...], options: RunOptions) -> int:
    """Brings the upstream's entry in the site's files to the cache, or to machines for a mirror. The exit code."""
    upstream = RegistryUpstream(upstream=name)
    upstream.require(app.site)
    if not options.check:
        app.frontend.require_answers()
    rotation = _UpstreamRotation(app, upstream, images)
    for number, stage in enumerate(rotation.stages, start=1):
        app.notify(f"{number}. {stage.title}")
    if options.check:
        return ExitCode.OK
    if not app.confirm("rotate"):
        return ExitCode.PREFLIGHT_FAILED
    with app.hold(VERB):
        return rotation.advance()


def place_of_entry(loaded: LoadedSite, name: str) -> str:
    """FILE:LINE:COLUMN: KEY of an upstream's entry in the site's files. Docker Hub needs no entry."""
    source = loaded.sources[CONFIG]
    path: YamlPath = ("docker_cache_remote_url",)
    section = loaded.site.services.registry
    for number, entry in enumerate(section.upstreams if section else ()):
        if entry.name == name:
            source, path = loaded.sources[SERVICES], ("registry", "upstreams", number)
    line, column = source.mark(path)
    return f"{source.file}:{line}:{column}: {dotted(path)}"


def has_failures(outcome: Outcome) -> bool:
    """Whether a machine that answered cannot use a registry."""
    return any(finding.verdict is Verdict.FAIL for finding in outcome.findings)


class _UpstreamRotation(WorkflowStore[None]):
    """Stateless: the machines show the remaining work, and the cache keeps the old credentials until the end."""

    def __init__(self, app: App, upstream: RegistryUpstream, images: tuple[str, ...]) -> None:
        self._app = app
        self._upstream = upstream
        self._test = RegistryTest(images=images, upstream=upstream.upstream)
        self._cached = upstream.served(app.site)
        self._phase = _SERVER_PHASE if self._cached else _CLIENT_PHASE
        self._place = place_of_entry(app.loaded, upstream.upstream)
        self._changes = False

    def read(self) -> None:
        """Nothing."""

    @property
    def stages(self) -> tuple[WorkflowStage[None], ...]:
        """Ask, replace, and for the cache: remove the old login that it kept."""
        name, cached = self._upstream.upstream, self._cached
        machine, target = ("The cache's machine", "The cache gets") if cached else ("Every machine", "Machines get")
        title = f"{machine} asks {name} with the site's entry ({self._place}); nothing changes where that fails"
        replace = f"{target} the entry, and every machine asks for {name} and pulls the images that you named"
        back = "; where that fails, the cache gets its old entry back" if cached else ""
        stages = (
            WorkflowStage("ask", title, never_done, self._query),
            WorkflowStage("replace", f"{replace}{back}", never_done, self._replace, self._verify, self._restore),
        )
        return (*stages, WorkflowStage("forget", "The cache removes its old entry", never_done, self._forget))[
            : 3 if cached else 2
        ]

    def advance(self) -> int:
        """Everything that is left, and the verification of the cluster. The exit code."""
        plan = self._app.dry_run(verb=VERB).plan
        if self._cached:
            self._app.require_leader(plan)
        self._changes = any(step.name == self._phase for step in plan.steps)
        code = Workflow(self.stages, self, self._app.frontend.notify).advance()
        return code or self._run(Verify()).exit_code

    def _query(self) -> int:
        outcome = self._do("keep" if self._cached and self._changes else "ask")
        if outcome.exit_code not in ANSWERED:
            name = self._upstream.upstream
            self._app.notify(f"{self._place}: {name} does not answer a request with this entry. Nothing was changed.")
            raise StageStopped(outcome.exit_code)
        return outcome.exit_code

    def _replace(self) -> int:
        return self._require_good(self._run(RegistryRotate(subject="upstream", phases=(self._phase,))))

    def _verify(self) -> int:
        if self._test.images and self._cached and self._changes:
            self._app.notify(f"waiting {LOGIN_CACHE_S} s: the cache uses a new login after that time")
            time.sleep(LOGIN_CACHE_S)
        return self._require_good(self._run(self._test))

    @staticmethod
    def _require_good(outcome: Outcome) -> int:
        if outcome.exit_code in ANSWERED and has_failures(outcome):
            raise StageFailed(ExitCode.VERIFICATION_FAILED)
        if outcome.exit_code not in ANSWERED:
            raise (StageStopped if outcome.interrupted else StageFailed)(outcome.exit_code)
        return outcome.exit_code

    def _restore(self) -> None:
        if not self._cached:
            self._app.notify(
                f"{self._place}: machines have this entry now. Correct it, and run the same command again."
            )
        elif self._do("restore").exit_code is ExitCode.OK:
            self._app.notify(f"the cache has its old entry again. {self._place} stays as you wrote it.")
        else:
            self._app.notify(f"{self._place}: the cache has this entry now. Its old entry could not be restored.")

    def _forget(self) -> int:
        self._do("forget")
        return ExitCode.OK

    def _do(self, action: str) -> Outcome:
        return self._run(RegistryUpstream.model_validate({"upstream": self._upstream.upstream, "does": action}))

    def _run(self, operation: RegistryUpstream | RegistryRotate | RegistryTest | Verify) -> Outcome:
        return self._app.run_agreed(operation)
