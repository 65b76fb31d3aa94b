"""Recognises an old site, reads it and writes the current one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pai_install.errors import ExitCode, PaiError
from pai_install.site.load import CONFIG, LAYOUT, SERVICES, SiteReading, read_site
from pai_install.site.migrate.csv_site import MASTERS, WORKERS, read_csv_site
from pai_install.site.migrate.emit import layout_text
from pai_install.site.migrate.layout_v0 import LAYOUT_NAMES, is_v0, read_v0_site
from pai_install.site.migrate.model import NewSite, Note
from pai_install.site.reader import read_document
from pai_install.site.services import read_services
from pai_install.system.files import write_atomic, write_secret


@dataclass(frozen=True, slots=True)
class Migration:
    """What was done. files: those written; notes: what was dropped or changed; reading: the check of the result."""

    origin: str
    files: tuple[Path, ...]
    notes: tuple[Note, ...]
    reading: SiteReading


def migrate(source: Path, target: Path) -> Migration:
    """Turns the old site in `source` into a current one in `target`.

    Raises PaiError when nothing old is found or a file in `target` would be overwritten, SiteInvalid when the old
    files cannot be read. A result that is not valid yet is written all the same: `reading` says what is left.
    """
    site = _recognise(source)
    services = source / SERVICES
    notes = list(site.notes)
    files = {LAYOUT: layout_text(site), CONFIG: site.config}
    kept = _services(services, notes)
    if kept is not None:
        files[SERVICES] = kept
    refuse_existing(target, files)
    for name, content in files.items():
        # config.yaml and services-configuration.yaml may hold passwords
        (write_atomic if name == LAYOUT else write_secret)(target / name, content)
    paths = tuple(target / name for name in files)
    return Migration(site.origin, paths, tuple(notes), read_site(target))


def refuse_existing(target: Path, names: dict[str, str]) -> None:
    """Raises PaiError when one of the files is there already."""
    for name in names:
        if (target / name).exists():
            raise PaiError(
                f"{target / name} exists already and is never overwritten",
                remedy="name an empty folder with --site",
                exit_code=ExitCode.USAGE,
            )


def _recognise(source: Path) -> NewSite:
    if (source / MASTERS).is_file() or (source / WORKERS).is_file():
        return read_csv_site(source)
    for name in LAYOUT_NAMES:
        if (source / name).is_file():
            layout = read_document(source / name)
            if name != LAYOUT or layout.root is None or is_v0(layout):
                return read_v0_site(source, layout)
            raise PaiError(
                f"{source / name} has the current form already",
                remedy=f"pai-install validate --site {source}",
                exit_code=ExitCode.USAGE,
            )
    raise PaiError(
        f"{source} holds no old site",
        details=f"looked for {MASTERS}, {WORKERS}, {', '.join(LAYOUT_NAMES)}",
        remedy="name the folder with the old files",
        exit_code=ExitCode.USAGE,
    )


def _services(path: Path, notes: list[Note]) -> str | None:
    if not path.is_file():
        return None
    document = read_document(path)
    read_services(document)
    if any(problem.is_error for problem in document.problems):
        notes.append(Note(SERVICES, f"not taken over: {document.problems[0].message}"))
        return None
    return "\n".join(document.lines)
