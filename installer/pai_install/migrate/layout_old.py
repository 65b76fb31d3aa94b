"""Layouts of OpenPAI before v1.5: roles of Kubernetes and of etcd, logins, machine types with `gpu`."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from pai_install.documents.document import Document, Entries, Items, Text
from pai_install.documents.problem import SiteInvalid, short
from pai_install.migrate.account import Book, Fate
from pai_install.migrate.config import NewConfig
from pai_install.migrate.folder import OldFile
from pai_install.migrate.logins import OLD_NAMES, Logins
from pai_install.migrate.model import NewMachine, NewMachines, Note, kept_masters, why_no_control_plane
from pai_install.migrate.skus import read_skus
from pai_install.site.load import CONFIG, LAYOUT

_LOGINS = {name for names in OLD_NAMES.values() for name in names}
_V0 = frozenset(_LOGINS | {"k8s-role", "etcdid", "zkid", "docker-data"})
_MARKERS = _V0 | {"gpu", "os", "nodename", "machinetype", "dataFolder"}
_SERVICE_ROLES = "OpenPAI's own services are not deployed"
_DROPPED = {
    "nodename": "the host name is the name in Kubernetes",
    "etcdid": "etcd runs on the control planes",
    "ssh-secret-name": _SERVICE_ROLES,
    **dict.fromkeys(
        (
            "zkid", "dashboard", "alert-manager", "watchdog", "node-exporter", "prometheus", "grafana", "pylon",
            "launcher", "hdfsrole", "yarnrole", "zookeeper", "jobhistory",
        ),
        _SERVICE_ROLES,
    ),
}  # fmt: skip
_OLD_ROOT = "/var/lib/docker"


def is_old(layout: Document) -> bool:
    """Whether a layout has keys that only OpenPAI before v1.5 knew."""
    found = _keys(layout)
    return "default-machine-properties" in layout.content or bool(_MARKERS & found)


def _keys(layout: Document) -> set[str]:
    listed = [entry for name in ("machine-sku", "machine-list") for entry in _entries(layout.content.get(name))]
    defaults = layout.content.get("default-machine-properties")
    return {key for entry in (*listed, defaults) if isinstance(entry, Entries) for key in entry}


def _entries(section: object) -> list[Entries]:
    items = section.values() if isinstance(section, Entries) else section if isinstance(section, Items) else ()
    return [item for item in items if isinstance(item, Entries)]


def texts(entry: object) -> dict[str, Text]:
    """The values of a mapping that are text and not empty."""
    items = entry.items() if isinstance(entry, Entries) else ()
    return {key: value for key, value in items if isinstance(value, Text) and value.strip()}


def read_old_layout(file: OldFile, config: NewConfig) -> NewMachines:
    """Raises SiteInvalid when the layout names no machine."""
    layout, book = file.document, file.book
    entries = _entries(layout.content.get("machine-list"))
    if not entries:
        layout.add(("machine-list",), "site.missing", "names no machine", "is it the right file?")
        raise SiteInvalid(layout.problems)
    defaults = _defaults(layout)
    v0 = bool(_V0 & _keys(layout))
    machines = _Machines(file, config, entries, defaults)
    if v0:
        _docker_data(machines, config, book)
    found = tuple(machines.read(index) for index in range(len(entries)))
    _drop_lost(layout, book)
    machines.logins.report_defaults(book)
    if "kubernetes" in layout.content:
        book.drop(("kubernetes",), "the addresses come from the control planes")
    skus = read_skus(layout.content.get("machine-sku"), book)
    book.whole(Fate.KEPT, f"{LAYOUT} and {CONFIG}, without its comments")
    version = "v0.x" if v0 else "v1.0-v1.4"
    notes = tuple(machines.notes)
    return NewMachines(f"OpenPAI {version} ({Path(layout.file).name})", skus, found, notes)


def _defaults(layout: Document) -> dict[str, Text]:
    """Returns the properties of all machines. quick-start.yaml and layouts made from it have their credentials at the
    top.
    """
    top = {key: value for key, value in texts(layout.content).items() if key in _LOGINS}
    return top | texts(layout.content.get("default-machine-properties"))


def _drop_lost(layout: Document, book: Book) -> None:
    """Reports each item of machine-list that is no mapping, such as a machine without its first key."""
    listed = layout.content.get("machine-list")
    for index, item in enumerate(listed if isinstance(listed, Items) else ()):
        if not isinstance(item, Entries):
            path = ("machine-list", index)
            text = short(item) if isinstance(item, Text) else "empty"
            book.drop(path, f"line {layout.mark(path).line} ({text}) has no key, such as hostname: the machine is lost")


def _docker_data(machines: _Machines, config: NewConfig, book: Book) -> None:
    """v0.x had a folder for each machine, and Docker's own where there was none: most machines decide."""
    usual = machines.defaults.get("docker-data", _OLD_ROOT)
    folders = Counter(entry.get("docker-data", usual).strip() for entry in machines.texts)
    # config.yaml has one folder for all machines. The most frequent one changes the fewest of them.
    folder = folders.most_common(1)[0][0]
    found_root = any("docker-data" in entry for entry in (*machines.texts, machines.defaults))
    why = "" if found_root else "where v0.x left it to Docker"
    config.add("docker_data_root", folder, why)
    for entry in (*machines.texts, machines.defaults):
        if "docker-data" in entry:
            config.settle(book, entry["docker-data"].path, "docker_data_root", entry["docker-data"].strip())


class _Machines:
    """The entries of machine-list. texts: their values that are text."""

    def __init__(self, file: OldFile, config: NewConfig, entries: list[Entries], defaults: dict[str, Text]) -> None:
        self.book, self.entries, self.defaults = file.book, entries, defaults
        self.texts = [texts(entry) for entry in entries]
        self.logins = Logins(config, self.texts, defaults)
        self.by_role = any(entry.get("k8s-role") == "master" for entry in self.texts)
        self.masters = [index for index, entry in enumerate(self.texts) if self._is_master(entry)]
        self.stay = set(self.masters[: kept_masters(len(self.masters))])
        self.notes: list[Note] = []

    def _is_master(self, entry: dict[str, Text]) -> bool:
        """Returns the role from Kubernetes' key, or from OpenPAI's key if no machine has Kubernetes' key."""
        return entry.get("k8s-role") == "master" if self.by_role else _flag(entry, "pai-master")

    def read(self, index: int) -> NewMachine:
        """The machine, with every key of it accounted for."""
        entry, place = self.texts[index], f"{LAYOUT}: machine-list[{index}]"
        name = re.sub(r"[^a-z0-9.-]+", "-", entry.get("hostname", entry.get("hostip", Text(""))).lower()).strip("-. \n")
        login = self.logins.of_machine(entry, name, self.book, place)
        self._report_names(entry, name, place)
        self._report_roles(index, entry, place)
        for key in entry.keys() & _DROPPED.keys():
            self.book.drop(entry[key].path, _DROPPED[key])
        self._report_odd(self.entries[index])
        return NewMachine(
            hostname=name,
            hostip=entry.get("hostip", "").strip(),
            sku=_type_of(entry),
            control_plane=index in self.stay,
            worker=_is_worker(entry),
            storage=_flag(entry, "pai-storage"),
            ssh=login.ssh,
            password_variable=login.variable,
            comment="" if name == entry.get("hostname") else f"was {short(entry.get('hostname', 'without name'))}",
        )

    def _report_names(self, entry: dict[str, Text], name: str, place: str) -> None:
        if "hostname" in entry:
            same = name == entry["hostname"].strip()
            report = self.book.keep if same else self.book.replace
            report(entry["hostname"].path, f"{place}.hostname" if same else "written as Kubernetes takes it")
        if "hostip" in entry:
            self.book.keep(entry["hostip"].path, f"{place}.hostip")
        if "machine-type" in entry:
            self.book.keep(entry["machine-type"].path, f"{place}.machine-type")
            if "machinetype" in entry:
                self.book.drop(entry["machinetype"].path, "machine-type is there, too")
        elif "machinetype" in entry:
            self.book.keep(entry["machinetype"].path, f"{place}.machine-type")

    def _report_roles(self, index: int, entry: dict[str, Text], place: str) -> None:
        became = {"pai-master": index in self.stay, "pai-worker": _is_worker(entry), "pai-storage": True}
        for key in became.keys() & entry.keys():
            path = entry[key].path
            if _flag(entry, key) and became[key]:
                self.book.keep(path, f"{place}.{key}")
            elif _flag(entry, key):
                masters = len(self.masters)
                self.book.drop(path, why_no_control_plane(masters) if index in self.masters else "k8s-role decides")
            else:
                self.book.replace(path, "left out, false is the default")
        role = entry.get("k8s-role")
        if role is None:
            return
        if role == "master" and index in self.stay:
            self.book.replace(role.path, 'pai-master: "true"')
        elif role == "master":
            self.book.drop(role.path, why_no_control_plane(len(self.masters)))
        elif role == "worker":
            self.book.replace(role.path, 'pai-worker: "true"')
        else:
            self.book.drop(role.path, "every machine finds the control planes without a proxy of its own")

    def _report_odd(self, entry: Entries) -> None:
        """Reports known keys with an empty value or no text."""
        known = {"hostname", "hostip", "machine-type", "machinetype", "k8s-role", "pai-master", "pai-worker"}
        for key in entry.keys() & (known | {"pai-storage"} | _V0 | _DROPPED.keys()):
            if not isinstance(entry[key], Text) or not entry[key].strip():
                why = "has no value" if entry[key] in (None, "") or isinstance(entry[key], Text) else "is no text"
                self.book.drop((*entry.path, key), why)


def _flag(entry: dict[str, Text], key: str) -> bool:
    return key in entry and entry[key].strip().lower() == "true"


def _is_worker(entry: dict[str, Text]) -> bool:
    return entry.get("k8s-role") == "worker" or _flag(entry, "pai-worker")


def _type_of(entry: dict[str, Text]) -> str:
    return str(entry.get("machine-type", entry.get("machinetype", ""))).strip()
