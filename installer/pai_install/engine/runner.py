"""The Engine on ansible-runner, and its only importer."""

from __future__ import annotations

import os
import queue
import shlex
import sys
import threading
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import ansible_runner
from ansible_runner.utils import get_callback_dir

from pai_install.engine import processes, workdir
from pai_install.engine.base import Event, RunRequest
from pai_install.engine.events import EXIT, RawEvent, read_stream
from pai_install.engine.runlog import RunLog
from pai_install.engine.width import forks_for
from pai_install.errors import PaiError
from pai_install.redact import secret_values

# The program ansible-playbook, with fewer searches for unreachable objects, and none among Ansible's modules. Workers
# are forks, and write to fewer pages. It takes a sixth of the processor time from a short run.
_ANSIBLE_PLAYBOOK = """
import gc, sys
gc.set_threshold(50_000, 20, 20)
from ansible.cli.playbook import main
gc.freeze()
sys.argv[0] = "ansible-playbook"
main()
"""
_Queue = queue.SimpleQueue[RawEvent | BaseException]


class RunnerEngine:
    """Runs the playbooks of `content` (a folder with playbooks/, roles/, and ansible.cfg). A context manager.

    work_dir: kept between runs for cached facts. known_hosts: ssh's list of the site's host keys. log: file for
    Ansible's own output with secrets masked. At the end of the context, all processes of the engine end, including
    ssh's connection masters.
    """

    def __init__(
        self,
        content: Path,
        work_dir: Path,
        known_hosts: Path,
        *,
        log: Path | None = None,
        accept_new_host_keys: bool = False,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._content = content.resolve()
        self._work_dir = work_dir.resolve()
        self._known_hosts = known_hosts.resolve()
        self._log = log
        self._accept_new = accept_new_host_keys
        self._environ = dict(os.environ if environ is None else environ)
        self._owner = processes.OwnerProcess.current()
        self._stack = ExitStack()
        self._sockets: Path | None = None

    def __enter__(self) -> Self:
        """Creates the folders and removes leftovers of a killed run."""
        self._work_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._work_dir.chmod(0o700)
        processes.end(processes.orphans())
        for folder in workdir.left_overs(self._work_dir):
            processes.end(processes.with_sockets_in(folder))  # ssh's masters outlive their run
            workdir.remove(folder)
        self._sockets = self._stack.enter_context(workdir.control_dir(self._owner))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._sockets is not None:
            processes.end(processes.with_sockets_in(self._sockets))
        processes.end(processes.owned_by(self._owner))
        self._stack.close()
        self._sockets = None

    def run(self, request: RunRequest) -> Generator[Event]:
        """Yields the run's events. See Engine.run. Raises PaiError if Ansible cannot run the playbook."""
        if not (self._content / "playbooks" / request.playbook).is_file():
            raise PaiError(
                f"cannot find the playbook {request.playbook} in {self._content / 'playbooks'}",
                code="playbook-missing",
                remedy="reinstall pai-install",
            )
        with workdir.run_files(self._work_dir, self._owner, request) as files:
            config = self._config(files, request)
            yield from self._stream(config, request)

    def _config(self, files: workdir.RunFiles, request: RunRequest) -> ansible_runner.RunnerConfig:
        if self._sockets is None:
            raise RuntimeError("RunnerEngine is a context manager: use it in a with statement")
        config = ansible_runner.RunnerConfig(
            private_data_dir=str(files.folder),
            project_dir=str(self._content / "playbooks"),
            playbook=str(self._content / "playbooks" / request.playbook),
            inventory=str(files.inventory),
            limit=f"@{_plain_path(files.limit, self._sockets)}" if files.limit else None,
            forks=request.forks or _width(request),
            cmdline=_options(files, request),
            quiet=True,
            ident="artifacts",
        )
        config.prepare()
        tools = Path(sys.executable).parent
        # -P keeps the current folder out of the search for modules.
        config.command[:1] = [sys.executable, "-P", "-c", _ANSIBLE_PLAYBOOK]
        config.env = {  # replaces the copy of our own environment that ansible-runner makes
            **workdir.environment(
                self._environ,
                content=self._content,
                work_dir=self._work_dir,
                run_dir=files.folder,
                tools=tools,
                owner=self._owner,
            ),
            **workdir.ssh_environment(self._known_hosts, self._sockets, accept_new=self._accept_new),
            "ANSIBLE_CALLBACK_PLUGINS": str(get_callback_dir()),
            "ANSIBLE_STDOUT_CALLBACK": "awx_display",
            "AWX_ISOLATED_DATA_DIR": config.artifact_dir,
        }
        return config

    def _stream(self, config: ansible_runner.RunnerConfig, request: RunRequest) -> Iterator[Event]:
        redactor = request.inventory.redactor.also([*request.secrets, *secret_values(request.extra_vars)])
        received: _Queue = queue.SimpleQueue()
        stop = threading.Event()
        # ansible-runner blocks until the end of the playbook. A thread turns its callbacks into a stream.
        thread = threading.Thread(target=_drive, args=(config, received, stop), daemon=True)
        thread.start()
        try:
            with RunLog(self._log, redactor) as log:
                yield from read_stream(_live(received, log, request.playbook))
        finally:
            if thread.is_alive():
                self._cancel(stop, thread)

    def _cancel(self, stop: threading.Event, thread: threading.Thread) -> None:
        """Ends Ansible and its workers, first by a signal that lets it remove its temporary files."""
        # The masters of ssh stay, because the next playbook uses their connections.
        processes.end(processes.owned_by(self._owner) - self._masters())
        stop.set()
        # A worker that hangs must not keep the command from its end.
        thread.join(timeout=10)

    def _masters(self) -> frozenset[int]:
        return processes.with_sockets_in(self._sockets) if self._sockets else frozenset()


def _width(request: RunRequest) -> int:
    """How many machines at a time."""
    hosts = request.limit or tuple(request.inventory.host_vars)
    address = str(request.inventory.host_vars.get(hosts[0], {}).get("ansible_host", "")) if hosts else ""
    return forks_for(len(hosts), address)


def _plain_path(path: Path, folder: Path) -> Path:
    """Returns a link to the file. Ansible splits a limit at spaces, commas, and colons of the site's path."""
    link = folder / path.parent.name
    link.symlink_to(path)
    return link


def _options(files: workdir.RunFiles, request: RunRequest) -> str:
    words = ["--extra-vars", f"@{files.extra_vars}"]
    if request.check:
        words += ["--check", "--diff"]
    return shlex.join(words)


def _drive(config: ansible_runner.RunnerConfig, received: _Queue, stop: threading.Event) -> None:
    """Runs Ansible in a separate thread and puts its events into the queue."""

    def handle(raw: dict[str, Any]) -> bool:
        received.put(raw)
        return False  # ansible-runner would write a file for each event

    try:
        runner = ansible_runner.Runner(config, event_handler=handle, cancel_callback=stop.is_set)
        runner.run()
        received.put({"event": EXIT, "rc": runner.rc if runner.rc is not None else 1})
    except BaseException as error:  # raised again in the reader's thread
        received.put(error)


def _live(received: _Queue, log: RunLog, playbook: str) -> Iterator[RawEvent]:
    counted = False
    while True:
        raw = received.get()
        if isinstance(raw, BaseException):
            raise PaiError(
                f"cannot run {playbook}: Ansible failed: {raw}", code="ansible-crashed", details=log.tail()
            ) from raw
        log.write(str(raw.get("stdout") or ""))
        counted = counted or raw.get("event") == "playbook_on_stats"
        if raw.get("event") == EXIT:
            # Ansible counts the hosts of each playbook that it ran. Without counts, it ran none.
            if raw["rc"] and not counted:
                raise PaiError(
                    f"cannot run {playbook}: Ansible ended with exit status {raw['rc']}",
                    code="ansible-did-not-run",
                    details=log.tail(),
                )
            yield raw
            return
        yield raw
