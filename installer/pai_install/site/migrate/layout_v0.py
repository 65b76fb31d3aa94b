"""OpenPAI v0.x: one layout with logins, roles of Kubernetes and of etcd, machine types with `gpu`."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from pai_install.site.document import Document, Entries, Items
from pai_install.site.migrate.emit import settings_text
from pai_install.site.migrate.model import NewDevice, NewMachine, NewSite, NewSku, Note, odd_control_planes
from pai_install.site.problem import SiteInvalid, short
from pai_install.site.reader import read_document
from pai_install.system.words import plural

LAYOUT_NAMES = ("layout.yaml", "cluster-configuration.yaml")
_MARKERS = frozenset({"gpu", "os", "k8s-role", "nodename", "etcdid", "username", "sshport", "docker-data"})
_SERVICE_ROLES = "OpenPAI's own services are not deployed"
_DROPPED = {
    "os": "the system is found on the machine",
    "dataFolder": "see docker_data_root in config.yaml",
    "nodename": "the host name is the name in Kubernetes",
    "etcdid": "etcd runs on the control planes",
    "zkid": _SERVICE_ROLES,
    "dashboard": _SERVICE_ROLES,
    "alert-manager": _SERVICE_ROLES,
    "docker-data": "one docker_data_root in config.yaml holds for all machines",
}


def is_v0(layout: Document) -> bool:
    """Whether a layout has keys that only OpenPAI v0.x knew."""
    if "default-machine-properties" in layout.content:
        return True
    return any(
        _MARKERS & entry.keys() for entry in [*_entries(layout, "machine-sku"), *_entries(layout, "machine-list")]
    )


def read_v0_site(source: Path, layout: Document) -> NewSite:
    """Raises SiteInvalid when the layout cannot be read or names no machine."""
    if layout.root is None or not _entries(layout, "machine-list"):
        if not layout.problems:
            layout.add(("machine-list",), "site.missing", "names no machine", "is it the right file?")
        raise SiteInvalid(layout.problems)
    machines = [{**_defaults(layout), **_texts(entry)} for entry in _entries(layout, "machine-list")]
    masters = [index for index, entry in enumerate(machines) if _is_master(entry, machines)]
    kept, notes = odd_control_planes([_name(machines[index]) for index in masters])
    common = {key: _common(machines, key) for key in ("username", "password")}
    keys = {entry.get("keyfile-path", "") for entry in machines}
    common["keyfile-path"] = keys.pop() if len(keys) == 1 else ""
    notes += _notes(layout, machines)
    return NewSite(
        origin=f"OpenPAI v0.x ({Path(layout.file).name})",
        skus=tuple(_sku(name, _mapping(layout.content["machine-sku"], name)) for name in _sku_names(layout)),
        machines=tuple(
            _machine(entry, common, control_plane=index in masters[:kept]) for index, entry in enumerate(machines)
        ),
        config=settings_text(_settings(source, machines, common)),
        notes=tuple(notes),
    )


def _entries(layout: Document, section: str) -> list[Entries]:
    value = layout.content.get(section)
    items = list(value.values()) if isinstance(value, Entries) else list(value) if isinstance(value, Items) else []
    return [item for item in items if isinstance(item, Entries)]


def _mapping(value: object, key: str) -> Entries:
    found = value.get(key) if isinstance(value, Entries) else None
    return found if isinstance(found, Entries) else Entries()


def _texts(entry: Entries) -> dict[str, str]:
    return {key: str(value).strip() for key, value in entry.items() if isinstance(value, str)}


def _defaults(layout: Document) -> dict[str, str]:
    return _texts(_mapping(layout.content, "default-machine-properties"))


def _sku_names(layout: Document) -> list[str]:
    skus = layout.content.get("machine-sku")
    return [str(name) for name in skus] if isinstance(skus, Entries) else []


def _common(machines: list[dict[str, str]], key: str) -> str:
    """The most frequent value of a key, or ""."""
    counted = Counter(entry[key] for entry in machines if entry.get(key))
    return counted.most_common(1)[0][0] if counted else ""


def _name(entry: dict[str, str]) -> str:
    return re.sub(r"[^a-z0-9.-]+", "-", entry.get("hostname", entry.get("hostip", "")).lower()).strip("-.")


def _is_master(entry: dict[str, str], machines: list[dict[str, str]]) -> bool:
    """By Kubernetes' role; where no machine has one, by OpenPAI's."""
    if any(other.get("k8s-role") == "master" for other in machines):
        return entry.get("k8s-role") == "master"
    return entry.get("pai-master", "").lower() == "true"


def _is_worker(entry: dict[str, str]) -> bool:
    return entry.get("k8s-role") == "worker" or entry.get("pai-worker", "").lower() == "true"


def _sku(name: str, entry: Entries) -> NewSku:
    gpu = _texts(_mapping(entry, "gpu"))
    count = gpu.get("count", "0")
    model = gpu.get("type", "unknown").removeprefix("gpu")
    device = NewDevice("nvidia.com/gpu", model or "unknown", count) if count.strip("0") else None
    mem = _texts(entry).get("mem", "1")
    return NewSku(
        re.sub(r"[^A-Za-z0-9._-]+", "-", name),
        f"{mem}Gi" if mem.isdigit() else mem,
        _texts(_mapping(entry, "cpu")).get("vcore", "1"),
        device,
        comment="CHECK: memory was in GB" if mem.isdigit() else "",
    )


def _machine(entry: dict[str, str], common: dict[str, str], *, control_plane: bool) -> NewMachine:
    name = _name(entry)
    usual = {**common, "sshport": "22"}
    named = {"user": "username", "port": "sshport", "key-file": "keyfile-path"}
    ssh = {new: entry[old] for new, old in named.items() if entry.get(old) and entry[old] != usual[old]}
    own_password = bool(entry.get("password")) and entry["password"] != common["password"]
    return NewMachine(
        hostname=name,
        hostip=entry.get("hostip", ""),
        sku=re.sub(r"[^A-Za-z0-9._-]+", "-", entry.get("machine-type", "")),
        control_plane=control_plane,
        worker=_is_worker(entry),
        ssh=ssh,
        password_variable=_variable(name) if own_password else "",
        comment="" if name == entry.get("hostname") else f"was {short(entry.get('hostname', 'without name'))}",
    )


def _variable(name: str) -> str:
    return "PAI_PASSWORD_" + re.sub(r"[^A-Z0-9]", "_", name.upper())


def _docker_data(machines: list[dict[str, str]]) -> str:
    """The folder that all machines have, or "" when they differ."""
    folders = {entry["docker-data"] for entry in machines if entry.get("docker-data")}
    return folders.pop() if len(folders) == 1 else ""


def _settings(source: Path, machines: list[dict[str, str]], common: dict[str, str]) -> dict[str, tuple[str, str]]:
    settings = {"user": (common["username"] or "root", "")}
    if common["password"]:
        settings["password"] = (common["password"], "Better kept elsewhere: {env: NAME}, {file: PATH} or !vault.")
    if common["keyfile-path"]:
        settings["ssh_key_file_path"] = (common["keyfile-path"], "")
    elif not common["password"]:
        settings["ssh_key_file_path"] = ("~/.ssh/id_rsa", "CHECK: the old site named neither key nor password")
    folder = _docker_data(machines)
    if folder:
        settings["docker_data_root"] = (folder, "")
    kubernetes = read_document(source / "kubernetes-configuration.yaml")
    services = _texts(_mapping(kubernetes.content, "kubernetes")).get("service-cluster-ip-range", "")
    if services:
        settings["service_cidr"] = (services, "from kubernetes-configuration.yaml")
    return settings


def _notes(layout: Document, machines: list[dict[str, str]]) -> list[Note]:
    entries = [*_entries(layout, "machine-list"), *_entries(layout, "machine-sku")]
    found = Counter(key for entry in entries for key in entry if key in _DROPPED)
    notes = [Note(f"{key} ({plural(count, 'entry', 'entries')})", _DROPPED[key]) for key, count in found.items()]
    if _docker_data(machines):
        notes = [note for note in notes if not note.what.startswith("docker-data ")]
    passwords = {entry["password"] for entry in machines if entry.get("password")}
    if len(passwords) > 1:
        why = "machines with a password of their own read it from an environment variable"
        notes.append(Note("passwords that differ", why))
    if "kubernetes" in layout.content:
        notes.append(Note("kubernetes", "the addresses come from the control planes"))
    return notes
