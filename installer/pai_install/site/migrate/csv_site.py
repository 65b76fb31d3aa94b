"""OpenPAI v1.0 to v1.4: master.csv and worker.csv (lines `hostname,address`) and a file of settings."""

from __future__ import annotations

from pathlib import Path

from pai_install.site.document import Document, Mark
from pai_install.site.legacy import LEGACY_SETTINGS
from pai_install.site.migrate.emit import without_keys
from pai_install.site.migrate.model import (
    RESOURCES,
    NewDevice,
    NewMachine,
    NewSite,
    NewSku,
    Note,
    odd_control_planes,
)
from pai_install.site.problem import SiteInvalid, short
from pai_install.site.reader import read_document
from pai_install.site.settings import NO_EFFECT, Settings

MASTERS, WORKERS = "master.csv", "worker.csv"
SETTINGS_NAMES = ("config", "config.yml", "config.yaml")
_CHECK = "CHECK: the old site did not say what these machines have; preflight compares it with the machines"


def read_csv_site(source: Path) -> NewSite:
    """Raises SiteInvalid for lines that name no machine, and for settings that are not YAML."""
    masters, workers = _read_list(source / MASTERS), _read_list(source / WORKERS)
    config = read_document(next((source / n for n in SETTINGS_NAMES if (source / n).is_file()), source / "config"))
    if not masters.problems and not _rows(masters):
        masters.add((), "site.empty", "names no machine", "write a line hostname,address for each master")
    problems = [problem for document in (masters, workers, config) for problem in document.problems]
    if any(problem.is_error for problem in problems):
        raise SiteInvalid(problems)
    rows = {name: (address, True, False) for name, address in _rows(masters)}
    for name, address in _rows(workers):
        rows[name] = (address, name in rows, True)
    names = list(dict.fromkeys(name for name, _ in _rows(masters)))
    kept, notes = odd_control_planes(names)
    stay = set(names[:kept])
    text, config_notes = _settings(config)
    return NewSite(
        origin="OpenPAI v1.0-v1.4 (master.csv, worker.csv)",
        skus=_skus(config, has_masters=any(not works for _, _, works in rows.values())),
        machines=tuple(
            NewMachine(name, address, "worker" if works else "master", name in stay, works)
            for name, (address, _, works) in rows.items()
        ),
        config=text,
        notes=(*notes, *config_notes),
    )


def _read_list(path: Path) -> Document:
    document = Document(str(path))
    try:
        document.lines = tuple(path.read_text(encoding="utf-8-sig").splitlines())
    except UnicodeDecodeError as error:
        message = f"is not UTF-8 text (byte 0x{error.object[error.start]:02x})"
        document.add((), "site.encoding", message, f"save it as UTF-8, for example: iconv -f UTF-16 -t UTF-8 {path}")
    except OSError as error:
        message = f"cannot be read: {error.strerror}" if path.exists() else "does not exist"
        document.add((), "site.no-file", message, "write lines of hostname,address")
    for number, line in enumerate(document.lines, start=1):
        if line.strip() and len([cell for cell in line.split(",") if cell.strip()]) != 2:
            message = f"{short(line)} is not `hostname,address`"
            document.add((), "site.csv", message, "write one machine per line", mark=Mark(number, 1))
    return document


def _rows(document: Document) -> list[tuple[str, str]]:
    cells = [[cell.strip() for cell in line.split(",") if cell.strip()] for line in document.lines if line.strip()]
    return [(row[0], row[1]) for row in cells]


def _skus(config: Document, *, has_masters: bool) -> tuple[NewSku, ...]:
    kind = str(config.content.get("gpu_type") or "nvidia").lower()
    device = NewDevice(RESOURCES.get(kind, RESOURCES["nvidia"]), "unknown", "1")
    worker = NewSku("worker", "1Gi", "1", device, comment=_CHECK)
    return (NewSku("master", "1Gi", "1", comment=_CHECK), worker) if has_masters else (worker,)


def _settings(config: Document) -> tuple[str, list[Note]]:
    known = {info.alias or name for name, info in Settings.model_fields.items()}
    dropped = {key: NO_EFFECT[key] for key in config.content if key in NO_EFFECT}
    unknown = ("is not a known key", "")
    dropped |= {key: LEGACY_SETTINGS.get(key, unknown)[0] for key in config.content if key not in known}
    runtime = config.content.get("worker_default_docker_runtime")
    if runtime is not None:
        dropped["worker_default_docker_runtime"] = "now container_default_runtime"
    text = without_keys(config, dropped)
    if runtime == "nvidia":
        text += "\ncontainer_default_runtime: nvidia\n"
    return text, [Note(f"{Path(config.file).name}: {key}", why) for key, why in dropped.items()]
