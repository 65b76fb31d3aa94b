"""Converts the SSH credentials of an old layout's machines to one account for all, with differences per machine."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from pai_install.documents.document import Text
from pai_install.migrate.account import Book
from pai_install.migrate.config import NewConfig
from pai_install.site.load import CONFIG

# the names of a key in old layouts, the one that OpenPAI read first; what it is in config.yaml
USER, PASSWORD, PORT, KEY = "user", "password", "port", "ssh_key_file_path"
OLD_NAMES = {
    USER: ("username", "ssh-username"),
    PASSWORD: ("password", "ssh-password"),
    PORT: ("sshport", "ssh-port"),
    KEY: ("keyfile-path", "ssh-keyfile-path"),
}
_RULES = "rules: it names the account of all machines, and this is another one"


class KeyedValue(NamedTuple):
    """A value of a machine and its key, or "" for both."""

    value: str = ""
    key: str = ""


def named(texts: dict[str, Text], kind: str) -> KeyedValue:
    """Returns an entry's value of one kind, under the first of its names."""
    return next((KeyedValue(str(texts[key]).strip(), key) for key in OLD_NAMES[kind] if key in texts), KeyedValue())


def _most(values: Iterable[str]) -> str:
    """The most frequent value, or ""."""
    counted = Counter(value for value in values if value)
    return counted.most_common(1)[0][0] if counted else ""


@dataclass(frozen=True, slots=True)
class LoginChange:
    """The differences of one machine: the keys below its `ssh`, and the variable of its password, or ""."""

    ssh: dict[str, str]
    variable: str


class Logins:
    """The credentials of all machines of a layout. entries: values per machine. defaults: for machines
    without values.
    """

    def __init__(self, config: NewConfig, entries: list[dict[str, Text]], defaults: dict[str, Text]) -> None:
        self.config, self.defaults = config, defaults
        self.variables: set[str] = set()
        self.used: set[str] = set()  # what machines have from the defaults
        self.by_config = config.has(USER)
        self._share(entries)

    def _value(self, entry: dict[str, Text], kind: str) -> str:
        """Returns the value for a machine: its own, or the default."""
        return (named(entry, kind) if named(entry, kind).key else named(self.defaults, kind)).value

    def _share(self, entries: list[dict[str, Text]]) -> None:
        """Puts the account of most machines into config.yaml, where that names none."""
        if self.by_config:
            same = [entry for entry in entries if self._value(entry, USER) == self.config.value(USER)]
            if not (self.config.has(PASSWORD) or self.config.has(KEY)):
                self._add_secrets(same)
            return
        self.config.add(USER, _most(self._value(entry, USER) for entry in entries) or "root")
        self._add_secrets(entries)
        if not self.config.value(PASSWORD) and not self.config.value(KEY):
            self.config.add(KEY, "~/.ssh/id_rsa", "CHECK: the old site named neither key nor password")

    def _add_secrets(self, entries: list[dict[str, Text]]) -> None:
        password = _most(self._value(entry, PASSWORD) for entry in entries)
        if password:
            self.config.add(PASSWORD, password, "Better kept elsewhere: {env: NAME}, {file: PATH} or !vault.")
        keys = {self._value(entry, KEY) for entry in entries}
        # A key for all machines is right only where all of them had this one.
        if len(keys) == 1 and "" not in keys:
            self.config.add(KEY, keys.pop())

    def of_machine(self, entry: dict[str, Text], name: str, book: Book, place: str) -> LoginChange:
        """Returns the differences of one machine, and accounts for its keys. place: of the machine in the new
        layout.yaml.
        """
        ssh: dict[str, str] = {}
        for kind, key in ((USER, "user"), (PORT, "port"), (KEY, "key-file")):
            value, usual = self._value(entry, kind), "22" if kind == PORT else self.config.value(kind)
            if value and value != usual and not self._overruled(kind, entry):
                ssh[key] = value
            self._report(book, entry, kind, usual, f"{place}.ssh.{key}")
        variable = self._variable(entry, name)
        self._report(book, entry, PASSWORD, self.config.value(PASSWORD), "", variable)
        return LoginChange(ssh, variable)

    def _overruled(self, kind: str, entry: dict[str, Text]) -> bool:
        """Whether a file of settings decides instead: then machines have no account of their own."""
        if not self.by_config or kind == PORT:
            return False
        another = self._value(entry, USER) not in ("", self.config.value(USER))
        return another or kind == USER or self.config.has(PASSWORD) or self.config.has(KEY)

    def _variable(self, entry: dict[str, Text], name: str) -> str:
        password = self._value(entry, PASSWORD)
        if not password or password == self.config.value(PASSWORD) or self._overruled(PASSWORD, entry):
            return ""
        wanted = "PAI_PASSWORD_" + re.sub(r"[^A-Z0-9]", "_", name.upper())
        free, number = wanted, 1
        while free in self.variables:  # a.b and a-b
            number += 1
            free = f"{wanted}_{number}"
        self.variables.add(free)
        return free

    def _report(
        self, book: Book, entry: dict[str, Text], kind: str, usual: str, place: str, variable: str = ""
    ) -> None:
        found = named(entry, kind)
        if not found.key:
            self.used.add(kind)
            return
        for key in OLD_NAMES[kind]:
            if key in entry and key != found.key:
                book.drop(entry[key].path, f"{found.key} is there, too, and OpenPAI read that")
        path = entry[found.key].path
        if kind != PORT and found.value == usual:
            book.keep(path, f"{CONFIG}: {kind}")
        elif kind == PORT and found.value == usual:
            book.replace(path, "left out, 22 is the default")
        elif variable:
            book.replace(path, "an environment variable, named at the machine's password-from")
        elif self._overruled(kind, entry):
            book.drop(path, f"{self.config.file.name if self.config.file else CONFIG} {_RULES}")
        else:
            book.keep(path, place)

    def report_defaults(self, book: Book) -> None:
        """Accounts for the defaults, after all machines."""
        for kind, names in OLD_NAMES.items():
            found = named(self.defaults, kind)
            for key in names:
                if key not in self.defaults:
                    continue
                path = self.defaults[key].path
                if key != found.key:
                    book.drop(path, f"{found.key} is there, too, and OpenPAI read that")
                elif kind != PORT and found.value == self.config.value(kind):
                    book.keep(path, f"{CONFIG}: {kind}")
                elif kind in self.used:
                    book.replace(path, "written at each machine that had none of its own, unless it is the default")
                else:
                    book.drop(path, "every machine says it itself")
