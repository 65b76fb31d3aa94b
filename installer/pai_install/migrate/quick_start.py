"""quick-start.yaml of OpenPAI v0.x: addresses and one login, of which `paictl config generate` made the others."""

from __future__ import annotations

from pai_install.documents.document import Document, Items, Text
from pai_install.documents.problem import SiteInvalid
from pai_install.migrate.account import Fate
from pai_install.migrate.config import NewConfig
from pai_install.migrate.folder import OldFile
from pai_install.migrate.model import RESOURCES, UNKNOWN_HARDWARE, NewDevice, NewMachine, NewMachines, NewSku
from pai_install.site.load import CONFIG, LAYOUT

QUICK_START_NAMES = ("quick-start.yaml", "quick-start.yml", "quick-start-example.yaml", "quickstart.yaml")
_SETTINGS = {
    "ssh-username": "user",
    "ssh-password": "password",
    "ssh-keyfile-path": "ssh_key_file_path",
    "service-cluster-ip-range": "service_cidr",
}
_DROPPED = {
    "dns": "the machines' own name servers are asked",
    "ssh-secret-name": "OpenPAI's own services are not deployed",
}
_SKU = "GENERIC"


def is_quick_start(document: Document) -> bool:
    """Whether a file lists addresses below `machines`."""
    return isinstance(document.content.get("machines"), Items)


def read_quick_start(file: OldFile, config: NewConfig) -> NewMachines:
    """The first machine is the control plane, and works where it is alone. Raises SiteInvalid without any machine."""
    content, book = file.document.content, file.book
    addresses = content.get("machines")
    found = [item for item in addresses if isinstance(item, Text)] if isinstance(addresses, Items) else []
    if not found:
        file.document.add(("machines",), "site.missing", "names no machine", "is it the right file?")
        raise SiteInvalid(file.document.problems)
    for key, setting in _SETTINGS.items():
        if isinstance(content.get(key), Text) and content[key].strip():
            config.add(setting, content[key].strip(), f"from {file.name}")
            config.settle(book, (key,), setting, content[key].strip())
    for key in content.keys() & _DROPPED.keys():
        book.drop((key,), _DROPPED[key])
    config.add("docker_data_root", "/var/lib/docker", "where v0.x left it to Docker")
    port = _port(file)
    machines = []
    for index, address in enumerate(found):
        book.keep(address.path, f"{LAYOUT}: machine-list[{index}].hostip")
        machines.append(_machine(address.strip(), port, first=index == 0, alone=len(found) == 1))
    book.whole(Fate.KEPT, f"{LAYOUT} and {CONFIG}, without its comments")
    sku = NewSku(_SKU, "1Gi", "1", NewDevice(RESOURCES["nvidia"], "unknown", "1"), comment=UNKNOWN_HARDWARE)
    return NewMachines(f"OpenPAI v0.x ({file.name})", (sku,), tuple(machines))


def _port(file: OldFile) -> str:
    port = file.document.content.get("ssh-port")
    if not isinstance(port, Text) or not port.strip():
        return ""
    if port.strip() == "22":
        file.book.replace(("ssh-port",), "left out, 22 is the default")
        return ""
    file.book.replace(("ssh-port",), f"{LAYOUT}: ssh.port of every machine")
    return port.strip()


def _machine(address: str, port: str, *, first: bool, alone: bool) -> NewMachine:
    return NewMachine(
        hostname=f"machine-{address.replace('.', '-')}".lower(),
        hostip=address,
        sku=_SKU,
        control_plane=first,
        worker=not first or alone,
        ssh={"port": port} if port else {},
        comment="CHECK: the old site did not name its machines",
    )
