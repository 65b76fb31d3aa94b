"""machine-sku of an old layout -> machine types."""

from __future__ import annotations

from pai_install.documents.document import Entries, Text
from pai_install.migrate.account import Book
from pai_install.migrate.model import RESOURCES, UNKNOWN_HARDWARE, NewDevice, NewSku
from pai_install.site.load import LAYOUT

_DROPPED = {
    "os": "the system is found on the machine",
    "dataFolder": "see docker_data_root in config.yaml",
}


def read_skus(section: object, book: Book) -> tuple[NewSku, ...]:
    """The machine types, with every key of them accounted for."""
    found = section.items() if isinstance(section, Entries) else ()
    return tuple(_sku(name, entry, book) for name, entry in found if isinstance(entry, Entries))


def _sku(name: str, entry: Entries, book: Book) -> NewSku:
    place = f"{LAYOUT}: machine-sku.{name}"
    for key in entry.keys() & _DROPPED.keys():
        book.drop((*entry.path, key), _DROPPED[key])
    mem, cores = _text(entry, "mem"), _text(_mapping(entry, "cpu"), "vcore")
    if cores is not None:
        book.keep(cores.path, f"{place}.cpu.vcore")
    comment = "" if mem is not None and cores is not None else UNKNOWN_HARDWARE
    amount = str(mem).strip() if mem is not None else "1Gi"
    if mem is not None and amount.isdigit():
        amount, comment = f"{amount}Gi", comment or "CHECK: memory was in GB"
        book.replace(mem.path, "the same in Gi; old layouts had GB")
    elif mem is not None:
        book.keep(mem.path, f"{place}.mem")
    return NewSku(name, amount, str(cores).strip() if cores is not None else "1", _device(entry, book, place), comment)


def _device(entry: Entries, book: Book, place: str) -> NewDevice | None:
    place += ".computing-device"
    now = _mapping(entry, "computing-device")
    if now:
        found = {key: _text(now, key) for key in ("type", "model", "count")}
        for key, text in found.items():
            if text is not None:
                book.keep(text.path, f"{place}.{key}")
        book.drop((*entry.path, "gpu"), "computing-device is there, too")
        texts = {key: text.strip() for key, text in found.items() if text is not None}
        return NewDevice(texts.get("type", RESOURCES["nvidia"]), texts.get("model", "unknown"), texts.get("count", "1"))
    gpu = _mapping(entry, "gpu")
    model, count = _text(gpu, "type"), _text(gpu, "count")
    if count is None or not count.strip().strip("0"):
        for text in (model, count):
            if text is not None:
                book.drop(text.path, "machines of this type have no device")
        return None
    book.keep(count.path, f"{place}.count")
    name = "" if model is None else str(model).strip().removeprefix("gpu")
    if model is not None and name == model.strip():
        book.keep(model.path, f"{place}.model")
    elif model is not None:
        book.replace(model.path, "the model without 'gpu' in front")
    return NewDevice(RESOURCES["nvidia"], name or "unknown", count.strip())


def _mapping(entry: Entries, key: str) -> Entries:
    found = entry.get(key)
    return found if isinstance(found, Entries) else Entries()


def _text(entry: Entries, key: str) -> Text | None:
    found = entry.get(key)
    return found if isinstance(found, Text) and found.strip() else None
