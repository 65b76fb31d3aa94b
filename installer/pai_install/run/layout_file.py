"""The site's layout.yaml for commands that write it, and other data of the controller host about removed machines."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from pai_install.documents.problem import text_lines
from pai_install.errors import ExitCode, PaiError
from pai_install.health.memory.store import HealthStore
from pai_install.run.actions import LocalWorker
from pai_install.run.state import StateFolder
from pai_install.run.verification_state import Proof, read_proof, write_proof
from pai_install.site.load import LAYOUT, LoadedSite, load_site, read_site
from pai_install.site_edit.machines import with_absent, without_machines
from pai_install.site_edit.spans import EditError
from pai_install.system.files import write_atomic


def layout_file(site_dir: Path) -> Path:
    """Returns the file, or the target of a link."""
    path = site_dir / LAYOUT
    # An atomic write renames a file over its target, so it would replace a link.
    return path.resolve() if path.is_symlink() else path


def read_layout(site_dir: Path) -> str:
    """Its text."""
    return layout_file(site_dir).read_bytes().decode()


def write_layout(site_dir: Path, text: str) -> None:
    """Keeps mode and owner of the file."""
    path = layout_file(site_dir)
    old = path.stat()
    write_atomic(path, text, mode=old.st_mode & 0o777)
    # The rename gives the file to the writer. With sudo, the administrator would lose it to root.
    if (old.st_uid, old.st_gid) != (path.stat().st_uid, path.stat().st_gid):
        os.chown(path, old.st_uid, old.st_gid)


def edited_layout(site_dir: Path, names: Collection[str], how: str) -> str:
    """The text without the machines (how: remove) or with them absent. Raises PaiError where no command can edit it."""
    edits = {"remove": without_machines, "absent": with_absent}
    return layout_edited_by(site_dir, lambda text: edits[how](text, names) if how in edits else text)


def layout_edited_by(site_dir: Path, edit: Callable[[str], str]) -> str:
    """The text after an edit. Raises PaiError where the file is written so that no command can edit it."""
    try:
        return edit(read_layout(site_dir))
    except EditError as error:
        raise PaiError(
            f"cannot edit {site_dir / LAYOUT}:{error.line}: {error.message}",
            code="layout-not-editable",
            remedy="edit machine-list by hand, then repeat the command",
            exit_code=ExitCode.PREFLIGHT_FAILED,
        ) from error


def site_with(site_dir: Path, layout: str) -> LoadedSite:
    """The site with another layout. Raises PaiError, with every problem and its place, where it would be invalid."""
    reading = read_site(site_dir, layout=layout)
    errors = [problem for problem in reading.problems if problem.is_error]
    if reading.site is None or errors:
        raise PaiError(
            "cannot edit layout.yaml: the site would be invalid. No changes made",
            code="edited-site-invalid",
            details="\n".join(text_lines(errors)),
            remedy="correct the listed lines first. Line numbers refer to the edited files",
            exit_code=ExitCode.SITE_INVALID,
        )
    return load_site(site_dir, layout=layout)


def forgetting_worker(site_dir: Path, state: StateFolder) -> LocalWorker:
    """Edits layout.yaml and deletes data of the machines: host keys, health history and baselines, pending
    verification.
    """

    def work(hosts: Sequence[str], arguments: Mapping[str, Any]) -> tuple[()]:
        text = edited_layout(site_dir, hosts, arguments["how"])
        if text != read_layout(site_dir):
            write_layout(site_dir, text)
        # An absent machine may come back with the same keys. A removed or replaced one does not.
        if arguments["how"] in ("remove", "replaced"):
            forget_host_keys(state.known_hosts, [arguments["addresses"][host] for host in hosts])
            HealthStore(state.health).forget(hosts)
        proof = read_proof(state.proof)
        kept = {name: entry for name, entry in proof.unproven.items() if name not in hosts}
        if kept != proof.unproven:
            write_proof(state.proof, Proof(unproven=kept))
        return ()

    return work


def writing_worker(site_dir: Path) -> LocalWorker:
    """Writes layout.yaml, unless it has changed since it was read."""

    def work(hosts: Sequence[str], arguments: Mapping[str, Any]) -> tuple[()]:
        del hosts
        # The text was edited in memory, so a change by someone else meanwhile would be lost.
        if read_layout(site_dir) != arguments["before"]:
            raise PaiError(
                f"cannot write {site_dir / LAYOUT}: it has changed during this command",
                code="layout-changed-meanwhile",
                remedy="repeat the command",
                exit_code=ExitCode.PREFLIGHT_FAILED,
            )
        write_layout(site_dir, arguments["text"])
        return ()

    return work


def forget_host_keys(known_hosts: Path, addresses: Collection[str]) -> None:
    """Drops the keys of machines: another one may get the address."""
    if not known_hosts.exists():
        return
    lines = known_hosts.read_text().splitlines()
    left = [line for line in lines if not _names(line).intersection(addresses)]
    if left != lines:
        write_atomic(known_hosts, "".join(f"{line}\n" for line in left), mode=0o600)


def _names(line: str) -> set[str]:
    """Returns the hosts of a line of known_hosts. [ADDRESS]:PORT counts as the address."""
    names = line.split(" ", 1)[0].split(",")
    return {name.partition("]")[0].removeprefix("[") for name in names}
