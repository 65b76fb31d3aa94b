"""Keeps the packet filter of a node as the published addresses say."""

from __future__ import annotations

import queue
import re
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from pai_install.agents.common.api import Client
from pai_install.agents.common.events import drained
from pai_install.agents.common.log import guarded
from pai_install.agents.common.values import Json, child, meta, text
from pai_install.agents.common.watch import keep_following
from pai_install.agents.group_network.addresses import (
    CONTROL_PLANES,
    GROUP,
    MACHINES,
    OTHERS,
    WEB,
    read_addresses,
    read_pages,
)
from pai_install.agents.group_network.publisher import FIELD, MAPS
from pai_install.agents.group_network.ruleset import TABLE, Rules, ruleset

# changes within this time, and within so many times what the last ones took, are applied together
_BATCH_S, _BATCH_COSTS = 0.1, 4
# after so long without a change it looks whether another program has removed the table
_LOOK_S = 15.0
_NFT_S = 30
# the name becomes a comment of the rules, which nft would refuse as a whole
_OF_GROUP = re.compile(re.escape(GROUP) + "[a-z0-9-]{1,63}")


class NftError(Exception):
    """nft refused the rules, or could not be run."""


def nft(*words: str, rules: str = "") -> None:
    """Runs nft. rules: its input. Raises NftError."""
    try:
        done = subprocess.run(("nft", *words), input=rules, capture_output=True, text=True, timeout=_NFT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NftError(str(error)) from error
    if done.returncode:
        raise NftError(done.stderr.strip()[:500])


@dataclass
class Guard:
    """The program. run: as nft. warn: takes a line for the log."""

    client: Client
    rules: Rules
    warn: Callable[[str], None]
    run: Callable[..., None] = nft
    events: queue.Queue[Callable[[], None]] = field(default_factory=queue.Queue)
    sets: dict[str, str] = field(default_factory=dict)
    applied: str = ""
    cost_s: float = 0

    def watch(self) -> None:
        """Starts the watch."""
        threading.Thread(target=self._follow, name="addresses", daemon=True).start()

    def _follow(self) -> None:
        keep_following(
            self.client,
            MAPS,
            lambda items: self.events.put(lambda: self.take_list(items)),
            lambda deleted, item: self.events.put(lambda: self.take(item, deleted=deleted)),
            self.warn,
        )

    def take_list(self, items: tuple[Json, ...]) -> None:
        """Takes all published sets."""
        self.sets.clear()
        for item in items:
            self.take(item, deleted=False)

    def take(self, item: Json, *, deleted: bool) -> None:
        """Takes one published set."""
        name = meta(item, "name")
        if name not in (OTHERS, MACHINES, CONTROL_PLANES, WEB) and not _OF_GROUP.fullmatch(name):
            return
        if deleted:
            self.sets.pop(name, None)
        else:
            self.sets[name] = text(child(item, "data").get(FIELD))

    def step(self, wait_s: float = _LOOK_S) -> None:
        """Takes the events since the last step, and applies what they change."""
        # With thousands of pods, nft needs a while. Waiting in proportion keeps the service from using a core.
        for take in drained(self.events, wait_s, max(_BATCH_S, _BATCH_COSTS * self.cost_s)):
            take()
        with guarded(self.warn, "the packet filter"):
            self.apply()

    def apply(self) -> None:
        """Applies the rules unless they are in force. Raises NftError. Before anything is published there are none."""
        # Half of the sets would close pods that are allowed to talk.
        if not {OTHERS, MACHINES} <= self.sets.keys():
            return
        sets = {name: read_addresses(words) for name, words in self.sets.items() if name != WEB}
        wanted = ruleset(self.rules, sets, read_pages(self.sets.get(WEB, "")))
        # Another program, such as a restart of nftables.service, may flush all tables.
        if wanted != self.applied or not self._in_force():
            started = time.monotonic()
            self.run("-f", "-", rules=wanted)
            self.applied, self.cost_s = wanted, time.monotonic() - started

    def _in_force(self) -> bool:
        try:
            self.run("--terse", "list", "chain", *TABLE.split(), "forward")
        except NftError:
            return False
        return True
