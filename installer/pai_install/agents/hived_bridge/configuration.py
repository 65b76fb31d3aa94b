"""HiveD's configuration: what the ConfigMap says, or the last one that HiveD came up with.

HiveD ends itself when its file changes, and does not start with a wrong one. So it reads a copy that is written here:
the wanted text first; where HiveD does not answer with it, the last good text, until the ConfigMap has another one.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from pai_install.agents.common.api import ApiError
from pai_install.agents.common.log import Log
from pai_install.agents.hived_bridge.metrics import Metrics

# An old HiveD that still answers has ended itself by then.
SETTLE_S = 10.0
# HiveD reads all nodes and pods before it answers; a wrong configuration it never survives.
TRIAL_S = 60.0
# The kubelet restarts what crashed after five minutes at most.
RETURN_S = 330.0


@dataclass(frozen=True)
class Record:
    """A text that outlives this pod. read: empty where none was kept. Both raise ApiError."""

    read: Callable[[], str]
    write: Callable[[str], None]


@dataclass(frozen=True)
class State:
    """used: what HiveD reads, since when (seconds). good: what it last answered with.

    refused: what it does not start with. proven: HiveD answers with `used`. kept: `good` is recorded.
    """

    used: str
    since: float
    good: str = ""
    refused: str = ""
    proven: bool = False
    kept: bool = True


def turn(state: State, wanted: str, now: float, *, up: bool) -> State:
    """What follows from HiveD's answering or not at that moment. Pure."""
    given = State("", now, state.good, kept=state.kept)
    waited = now - state.since
    # A new text is always tried, whatever became of the one before.
    if wanted not in (state.used, state.refused):
        return replace(given, used=wanted)
    if up and waited >= SETTLE_S:
        return _proven(state, wanted)
    if state.proven:
        # it came up with this one before: what is wrong is something else
        return state
    if state.used == wanted:
        due = waited >= TRIAL_S and state.good not in ("", wanted)
        return replace(given, used=state.good, refused=wanted) if due else state
    # not even the last good one: so it may not be the wanted one's fault
    return replace(given, used=wanted) if waited >= RETURN_S else state


def _proven(state: State, wanted: str) -> State:
    refused = "" if wanted == state.used else state.refused
    kept = state.kept and state.good == state.used
    return replace(state, proven=True, good=state.used, refused=refused, kept=kept)


class Configuration:
    """Watches the ConfigMap's file and HiveD; writes HiveD's file."""

    def __init__(
        self, wanted: Path, used: Path, record: Record, metrics: Metrics, log: Log, up: Callable[[], bool]
    ) -> None:
        self._wanted, self._used, self._record = wanted, used, record
        self._metrics, self._log, self._up = metrics, log, up
        self._good_is_known = False
        self._ended = threading.Event()
        self.state = State("", 0.0)

    @property
    def current(self) -> bool:
        """Whether HiveD has come up with what the ConfigMap says."""
        return self.state.proven and not self.state.refused

    def begin(self) -> None:
        """Writes HiveD's file for the first time. Raises OSError where the ConfigMap's cannot be read."""
        text = self._wanted.read_text(encoding="utf-8")
        # a HiveD with another text may be running, where only the bridge has started again
        other = self._used.exists() and self._used.read_text(encoding="utf-8") != text
        self.state = State(text, time.monotonic() - (0 if other else SETTLE_S), self._kept_text())
        self._place(text)

    def watch(self, pause_s: float) -> None:
        """Looks every `pause_s` seconds, until `end`."""
        while not self._ended.wait(pause_s):
            self.look(time.monotonic())

    def end(self) -> None:
        """Ends `watch`."""
        self._ended.set()

    def look(self, now: float) -> None:
        """One look; a file that cannot be read or written is tried again at the next one."""
        try:
            wanted = self._wanted.read_text(encoding="utf-8")
            self._learn()
            after = turn(self.state, wanted, now, up=self._up())
            if after.used != self.state.used:
                self._place(after.used)
        except (OSError, ValueError) as error:
            self._log("the configuration cannot be kept", reason=str(error))
            return
        self._report(after)
        self.state = after
        self._keep()
        self._metrics.set("hived_bridge_configuration_current", float(self.current))

    def _learn(self) -> None:
        """The last good text, where it could not be read at the start."""
        if not self._good_is_known and not self.state.good:
            self.state = replace(self.state, good=self._kept_text())

    def _kept_text(self) -> str:
        try:
            text = self._record.read()
        except ApiError as error:
            self._log("the last good configuration cannot be read", reason=str(error))
            return ""
        self._good_is_known = True
        return text

    def _keep(self) -> None:
        if self.state.kept:
            return
        try:
            self._record.write(self.state.good)
        except ApiError as error:
            self._log("the last good configuration cannot be kept", reason=str(error))
            return
        self.state = replace(self.state, kept=True)

    def _place(self, text: str) -> None:
        """In one step: HiveD reads its file at any moment."""
        part = self._used.with_name(f".{self._used.name}.part")
        part.write_text(text, encoding="utf-8")
        part.chmod(0o644)
        part.replace(self._used)

    def _report(self, after: State) -> None:
        if after.refused != self.state.refused and after.refused:
            self._log(
                "HiveD does not come up with the configuration: back to the last good one", wanted=digest(after.refused)
            )
        elif after.used != self.state.used:
            self._log("HiveD is given a configuration", wanted=digest(after.used))
        elif after.proven and not self.state.proven:
            self._log("HiveD has come up with the configuration", wanted=digest(after.used))


def digest(text: str) -> str:
    """A short name for a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
