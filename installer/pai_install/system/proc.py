"""The only door to other programs (Ansible goes through engine/)."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pai_install.errors import ExitCode, PaiError

_MOST_ERRORS = 1 << 16
_PART = 1 << 18


@dataclass(frozen=True, slots=True)
class Completed:
    """A finished process: its exit status and its decoded output."""

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str

    @property
    def ok(self) -> bool:
        """Whether it exited with 0."""
        return self.returncode == 0


class OverdueError(PaiError):
    """A program exceeded its timeout and was killed. stdout: its output until then."""

    def __init__(self, argv: Sequence[str], timeout_s: float, stdout: object) -> None:
        super().__init__(
            f"{argv[0]} did not finish within {timeout_s} s", code="program-timed-out", details=" ".join(argv)
        )
        self.stdout = stdout.decode(errors="replace") if isinstance(stdout, bytes) else str(stdout or "")


def _missing(program: str) -> PaiError:
    return PaiError(
        f"cannot run {program}: it is not installed on this host",
        code="program-missing",
        remedy=f"install the package that provides {program}",
        exit_code=ExitCode.PREFLIGHT_FAILED,
    )


def run(
    argv: Sequence[str | Path],
    *,
    check: bool = True,
    stdin: str | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout_s: float | None = None,
) -> Completed:
    """Runs a program to its end. `env` replaces the environment, if given.

    Never put a secret into argv: other users can read it.

    Raises PaiError if the program is missing or exceeds `timeout_s`, and, with `check`, if it fails.
    """
    words = tuple(str(word) for word in argv)
    try:
        done = subprocess.run(
            words,
            input=stdin,
            capture_output=True,
            text=True,
            errors="replace",
            cwd=cwd,
            env=dict(env) if env is not None else None,
            timeout=timeout_s,
            check=False,
        )
    except FileNotFoundError as error:
        raise _missing(words[0]) from error
    except subprocess.TimeoutExpired as error:
        raise OverdueError(words, timeout_s or 0, error.stdout) from error
    completed = Completed(words, done.returncode, done.stdout, done.stderr)
    if check and not completed.ok:
        raise PaiError(
            f"cannot complete {words[0]}: exit status {done.returncode}",
            code="program-failed",
            details=f"$ {' '.join(words)}\n{(done.stderr or done.stdout).strip()[-4000:]}",
        )
    return completed


def spawn(argv: Sequence[str | Path], *, env: Mapping[str, str], log: Path) -> int:
    """Starts a program that outlives this process, in a separate session, and returns its process id.

    Its output is appended to `log`. Raises PaiError if the program is missing.
    """
    words = tuple(str(word) for word in argv)
    with log.open("ab") as output:
        try:
            child = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(env),
                cwd="/",
                start_new_session=True,
            )
        except FileNotFoundError as error:
            raise _missing(words[0]) from error
    child.returncode = 0  # not ours to wait for: silences the warning about a process still running
    return child.pid


def stream(
    argv: Sequence[str | Path],
    on_line: Callable[[str], None],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> None:
    """Runs a program to its end and passes on each line of its output (both streams) immediately.

    The program ends with this process: it is terminated if `on_line` raises. Raises PaiError if the program is missing
    or fails, with the last lines in the details.
    """
    words = tuple(str(word) for word in argv)
    last: deque[str] = deque(maxlen=40)
    try:
        child = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd=cwd,
            env=dict(env) if env is not None else None,
        )
    except FileNotFoundError as error:
        raise _missing(words[0]) from error
    try:
        for line in child.stdout or ():
            last.append(line.rstrip("\n"))
            on_line(last[-1])
    except BaseException:
        child.terminate()
        raise
    finally:
        child.wait()
        if child.stdout:
            child.stdout.close()
    if child.returncode:
        details = "\n".join((f"$ {' '.join(words)}", *last))
        raise PaiError(
            f"cannot complete {words[0]}: exit status {child.returncode}", code="program-failed", details=details
        )


@contextmanager
def beside(argv: Sequence[str | Path], *, cwd: Path, env: Mapping[str, str]) -> Iterator[None]:
    """Runs a program beside a block and drops its output. The end of the block waits for it.

    An error in the block terminates the program. Its own failure has no consequence.
    """
    words = tuple(str(word) for word in argv)
    nothing = subprocess.DEVNULL
    try:
        child = subprocess.Popen(words, stdin=nothing, stdout=nothing, stderr=nothing, cwd=cwd, env=dict(env))
    except FileNotFoundError as error:
        raise _missing(words[0]) from error
    try:
        yield
    except BaseException:
        child.terminate()
        raise
    finally:
        child.wait()


class FailedError(PaiError):
    """A program failed. completed: its end, with the output that was not handed over already."""

    def __init__(self, completed: Completed) -> None:
        name = completed.argv[0]
        super().__init__(
            f"cannot complete {name}: exit status {completed.returncode}",
            code="program-failed",
            details=completed.stderr.strip()[-4000:],
        )
        self.completed = completed


def lines(argv: Sequence[str | Path], *, stdin: str = "", env: Mapping[str, str] | None = None) -> Generator[str]:
    """Runs a program and yields the lines of its standard output immediately. Closing the generator ends it.

    The program's input stays open after `stdin` until the generator is closed. Raises PaiError if the program is
    missing, and FailedError with its standard error if it fails.
    """
    words = tuple(str(word) for word in argv)
    # A pipe for errors could fill while only the output is read. The program would then wait forever.
    with tempfile.TemporaryFile() as errors:
        try:
            child = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                errors="replace",
                env=dict(env) if env is not None else None,
            )
        except FileNotFoundError as error:
            raise _missing(words[0]) from error
        with child:
            assert child.stdin is not None and child.stdout is not None  # noqa: S101, PT018 - both are pipes
            try:
                child.stdin.write(stdin)
                child.stdin.flush()
                yield from (line.rstrip("\n") for line in child.stdout)
            except BrokenPipeError:
                pass  # it ended early, and says why on its standard error
            except BaseException:
                child.terminate()
                raise
            finally:
                _close(child.stdin)
        if child.returncode:
            errors.seek(0)
            raise FailedError(Completed(words, child.returncode, "", errors.read().decode(errors="replace")))


def feed(
    argv: Sequence[str | Path],
    content: IO[bytes],
    on_size: Callable[[int], None],
    *,
    env: Mapping[str, str],
    prefix: str = "",
) -> Completed:
    """Runs a program with a file as its input. on_size: takes the number of bytes that it has read so far.

    prefix: text before the file. The program is terminated if this process is interrupted. Raises PaiError if the
    program is missing.
    """
    words = tuple(str(word) for word in argv)
    # Files in place of pipes: while it is fed, no one reads the output of the program.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=output, stderr=errors, env=dict(env))
        except FileNotFoundError as error:
            raise _missing(words[0]) from error
        assert child.stdin is not None  # noqa: S101 - it is a pipe
        try:
            with suppress(BrokenPipeError):  # it ended early, and says why
                child.stdin.write(prefix.encode())
                sent = 0
                while part := content.read(_PART):
                    child.stdin.write(part)
                    sent += len(part)
                    on_size(sent)
        except BaseException:
            child.terminate()
            raise
        finally:
            with suppress(BrokenPipeError):
                child.stdin.close()
            child.wait()
        echoed = []
        for file in (output, errors):
            file.seek(0)
            echoed.append(file.read(_MOST_ERRORS).decode(errors="replace"))
        return Completed(words, child.returncode, echoed[0], echoed[1])


class Conversation:
    """A running program whose input and output are one socket, `socket`. Raises PaiError if the program is missing."""

    def __init__(self, argv: Sequence[str | Path], *, env: Mapping[str, str]) -> None:
        words = tuple(str(word) for word in argv)
        # HTTP needs one socket for both directions, and ssh has two streams.
        self.socket, peer = socket.socketpair()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by end()
        with peer:
            try:
                self._child = subprocess.Popen(
                    words, stdin=peer.fileno(), stdout=peer.fileno(), stderr=self._errors, env=dict(env)
                )
            except FileNotFoundError as error:
                self.socket.close()
                self._errors.close()
                raise _missing(words[0]) from error

    def end(self, wait_s: float) -> str:
        """Closes the socket, waits for the end of the program, and returns its standard error."""
        self.socket.close()
        try:
            self._child.wait(wait_s)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        with self._errors as errors:
            errors.seek(0)
            return errors.read(_MOST_ERRORS).decode(errors="replace")


def attached(argv: Sequence[str | Path], *, env: Mapping[str, str], prefix: str = "") -> int:
    """Runs a program on this process's own terminal or pipes, and returns its exit status as a shell would.

    prefix: text before our own input, which makes its input a pipe. A Ctrl-C goes to the program. Raises PaiError if
    the program is missing.
    """
    words = tuple(str(word) for word in argv)
    try:
        child = subprocess.Popen(words, stdin=subprocess.PIPE if prefix else None, env=dict(env))
    except FileNotFoundError as error:
        raise _missing(words[0]) from error
    # Ctrl-C reaches this process, too. It must outlive the program to return its exit status.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        if child.stdin is not None:
            # The program may end without reading its input. Then nothing waits for the terminal.
            threading.Thread(target=_feed, args=(child.stdin, prefix.encode()), daemon=True).start()
        status = child.wait()
    finally:
        signal.signal(signal.SIGINT, before)
    return status if status >= 0 else 128 - status


def _feed(pipe: IO[bytes], prefix: bytes) -> None:
    """Writes the prefix, then our own input as it comes, until either side ends."""
    with suppress(OSError, ValueError):
        pipe.write(prefix)
        pipe.flush()
        while data := os.read(sys.stdin.fileno(), 65536):
            pipe.write(data)
            pipe.flush()
        pipe.close()


def _close(pipe: IO[str]) -> None:
    with suppress(BrokenPipeError):
        pipe.close()
