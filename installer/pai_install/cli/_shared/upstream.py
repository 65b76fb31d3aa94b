"""Another account, address or authority of one upstream: asked, replaced, tried, and put back where it fails."""

from __future__ import annotations

import time
from pathlib import Path

import click

from pai_install.cli._shared.act import How, require_answer
from pai_install.cli._shared.rotation import VERB, refused
from pai_install.cli._shared.runs import Runs
from pai_install.cli._shared.tell import say
from pai_install.documents.problem import YamlPath, dotted
from pai_install.errors import ExitCode
from pai_install.operations.registry_look import RegistryTest
from pai_install.operations.registry_rotate import RegistryRotate
from pai_install.operations.registry_upstream import RegistryUpstream
from pai_install.operations.verify import Verify
from pai_install.plan.model import Plan
from pai_install.report.model import Outcome
from pai_install.run.environment import Environment
from pai_install.site.load import CONFIG, SERVICES, LoadedSite, load_site

# the registry keeps an upstream's login for a minute (playbooks/filter_plugins/pai_docker_cache.py)
TAKEN_OVER_S = 60
SERVER, CLIENTS = "addons", "registries"
_CARRIED_ON = (ExitCode.OK, ExitCode.UNREACHABLE)


def rotate_upstream(site_dir: Path, name: str, images: tuple[str, ...], environment: Environment, how: How) -> int:
    """Brings what the site's files now say of the upstream to the cache, or to machines for a mirror; the exit code."""
    loaded = load_site(site_dir)
    ask = RegistryUpstream(upstream=name)
    ask.require(loaded.site)
    require_answer(how)
    place, served = place_of(loaded, name), ask.served(loaded.site)
    for number, line in enumerate(_stages(name, place, served=served), start=1):
        say(f"{number}. {line}")
    if how.check:
        return ExitCode.OK
    if not how.yes and not click.confirm("rotate?", err=True):
        say("nothing was done")
        return ExitCode.PREFLIGHT_FAILED
    runs = Runs(site_dir, environment, how, VERB)
    return runs.ended(_UpstreamRotation(runs, ask, images, place, served=served).go_on())


def place_of(loaded: LoadedSite, name: str) -> str:
    """FILE:LINE:COLUMN: KEY of what the site says of an upstream; Docker Hub needs no entry."""
    source = loaded.sources[CONFIG]
    path: YamlPath = ("docker_cache_remote_url",)
    section = loaded.site.services.registry
    for number, entry in enumerate(section.upstreams if section else ()):
        if entry.name == name:
            source, path = loaded.sources[SERVICES], ("registry", "upstreams", number)
    line, column = source.mark(path)
    return f"{source.file}:{line}:{column}: {dotted(path)}"


def _stages(name: str, place: str, *, served: bool) -> tuple[str, ...]:
    who, gets = ("the cache's machine", "The cache gets it") if served else ("every machine", "Machines get it")
    back = "; where they cannot, what the cache had is put back" if served else ""
    return (
        f"{who.capitalize()} asks {name} with what the site says ({place}); nothing changes where that fails",
        gets,
        f"Every machine asks for {name}, and pulls the images that were named{back}",
    )


class _UpstreamRotation:
    def __init__(self, runs: Runs, ask: RegistryUpstream, images: tuple[str, ...], place: str, *, served: bool) -> None:
        self._runs = runs
        self._ask = ask
        self._test = RegistryTest(images=images, upstream=ask.upstream)
        self._place = place
        self._served = served
        self._phase = SERVER if served else CLIENTS

    def go_on(self) -> int:
        """All of it; one that was interrupted does what is left."""
        plan = self._runs.standing().plan
        if self._served:
            self._runs.require_leader(plan)
        changes = self._changes(plan)
        outcome = self._does("keep" if self._served and changes else "ask")
        if outcome.interrupted or outcome.exit_code not in _CARRIED_ON:
            say(f"{self._place}: {self._ask.upstream} cannot be asked with what stands here; nothing was changed")
            return outcome.exit_code
        return self._replace(changes=changes)

    def _replace(self, *, changes: bool) -> int:
        outcome = self._runs.run(RegistryRotate(subject="upstream", phases=(self._phase,)))
        if outcome.interrupted:
            return outcome.exit_code
        if outcome.exit_code in _CARRIED_ON:
            outcome = self._tried(changes=changes)
            if outcome.interrupted:
                return outcome.exit_code
        if outcome.exit_code not in _CARRIED_ON or refused(outcome):
            return self._take_back(outcome)
        if self._served:
            self._does("forget")
        return outcome.exit_code or self._runs.run(Verify()).exit_code

    def _tried(self, *, changes: bool) -> Outcome:
        if self._test.images and self._served and changes:
            say(f"the cache asks with a new login within {TAKEN_OVER_S} s: waiting for that")
            time.sleep(TAKEN_OVER_S)
        return self._runs.run(self._test)

    def _take_back(self, outcome: Outcome) -> int:
        if not self._served:
            say(f"{self._place}: machines ask with what stands here; correct it and run this again")
        elif self._does("restore").exit_code is ExitCode.OK:
            say(f"the cache has what it had before; {self._place} stays as you wrote it, and plan shows the difference")
        else:
            say(f"{self._place}: the cache has what stands here; what it had before could not be put back")
        return ExitCode.VERIFICATION_FAILED if outcome.exit_code in _CARRIED_ON else outcome.exit_code

    def _does(self, what: str) -> Outcome:
        return self._runs.run(RegistryUpstream.model_validate({"upstream": self._ask.upstream, "does": what}))

    def _changes(self, plan: Plan) -> bool:
        return any(step.name == self._phase for step in plan.steps)
