"""`<% $parameters.x %>` and the like in a job's commands -> the commands as they run. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pai_install.documents.document import Document, Entries, Items, Mark, Text
from pai_install.documents.embedded import Places
from pai_install.documents.problem import short
from pai_install.documents.validate import did_you_mean

SECRETS = "$secrets"
_MOST_PLACES = 100
# of a job file with 100 roles. A pod has commands of 64 KiB
MOST_FILLED = 8 * 1024 * 1024
TOO_LONG = f"the commands of all roles, with their references, have more than {MOST_FILLED // 1024**2} MiB"
SHORTEN = "put long texts into a file on a storage"
_TAG = re.compile(r"<%(.*?)(?:%>|\Z)", re.DOTALL)
_REFERENCE = re.compile(r"(\$[A-Za-z]+)((?:\.[^\s.\[\]]+|\[\d+\])+)")
_STEP = re.compile(r"\.([^\s.\[\]]+)|\[(\d+)\]")


class Filled(NamedTuple):
    """A text with its references filled in. secret: whether a secret is in it now."""

    text: str
    secret: bool


@dataclass
class CommandRoom:
    """Characters that the commands of a file may still have, with their references filled in."""

    left: int = MOST_FILLED

    def take(self, count: int) -> bool:
        """Whether there is room for these characters. Once there was none, there is none."""
        self.left = self.left - count if self.left >= 0 else self.left
        return self.left >= 0


@dataclass(frozen=True)
class References:
    """What texts of a document may refer to. scope: "$parameters" -> what is below it. room: of all texts."""

    document: Document
    scope: Mapping[str, object]
    room: CommandRoom = field(default_factory=CommandRoom)

    def fill(self, text: str) -> Filled:
        """The text as it runs; adds a problem at each reference that leads nowhere."""
        secret = False

        def value(match: re.Match[str]) -> str:
            nonlocal secret
            if self.room.left < 0:
                return ""
            found = self._value(match[0], match[1].strip(), text, match.start())
            secret = secret or found.secret
            return found.text if self.room.take(len(found.text)) else self._too_much(text)

        if self.room.left < 0:
            return Filled("", secret=False)
        if not self.room.take(len(text)):
            return Filled(self._too_much(text), secret=False)
        return Filled(_TAG.sub(value, str(text)).strip(), secret)

    def _value(self, tag: str, reference: str, text: str, index: int) -> Filled:
        if not tag.endswith("%>"):
            return self._wrong(text, index, "`<%` is not closed", "write `<% $parameters.NAME %>`")
        match = _REFERENCE.fullmatch(reference)
        if match is None:
            remedy = "write `<% $parameters.NAME %>`, or $secrets, $data, $script, $output in place of $parameters"
            return self._wrong(text, index, f"`{short(tag)}` is not understood", remedy)
        name, steps = match[1], match[2]
        if self.scope.get(name) is None:
            remedy = did_you_mean(name, [key for key, below in self.scope.items() if below is not None])
            return self._wrong(text, index, f"there is no {name} here", remedy)
        return self._below(name, steps, text, index)

    def _below(self, name: str, steps: str, text: str, index: int) -> Filled:
        value, shown = self.scope[name], name
        for key, number in _STEP.findall(steps):
            if isinstance(value, Entries) and key in value:
                value, shown = value[key], f"{shown}.{key}"
            elif isinstance(value, Items) and number and int(number) < len(value):
                value, shown = value[int(number)], f"{shown}[{number}]"
            else:
                known = list(value) if isinstance(value, Entries) else []
                step = short(f".{key}" if key else f"[{number}]")
                return self._wrong(text, index, f"{shown} has no {step}", did_you_mean(key, known) if known else "")
        if not isinstance(value, Text):
            what = "no value" if value is None else "no text but more below it"
            return self._wrong(text, index, f"{shown} has {what}", "name a text or a number")
        if "<%" in value and name != SECRETS:  # OpenPAI fills in secrets last, also those of parameters
            inner = References(self.document, {SECRETS: self.scope.get(SECRETS)}, self.room).fill(value)
            return Filled(inner.text, inner.secret)
        return Filled(str(value), name == SECRETS)

    def _too_much(self, text: str) -> str:
        """Adds one problem for all: a small file could mean more than fits in memory."""
        return self._wrong(text, 0, TOO_LONG, SHORTEN).text

    def _wrong(self, text: str, index: int, message: str, remedy: str) -> Filled:
        path, mark = ((text.path, self._place(text, index))) if isinstance(text, Text) else ((), None)
        self.document.add(path, "site.reference", message, remedy, mark=mark)
        return Filled("", secret=False)

    def _place(self, text: Text, index: int) -> Mark:
        """The place of a character. Of many problems only the first have it: each looks through the file."""
        if len(self.document.problems) > _MOST_PLACES:
            return text.mark
        return Places(text, self.document.lines).at(index)
