"""Errors of the controller host's operating system, as messages with a remedy."""

from __future__ import annotations

import errno
import os
import socket
import ssl

from pai_install.errors import ExitCode, PaiError

_RIGHTS = "run the command as the owner of the folder, for example with sudo, or name another folder with --site"
_ROOM = "free space on the disk, then repeat the command"
_IN_THE_WAY = "move the existing file away, then repeat the command"
_DISK = "check the disk (dmesg) and how it is mounted"
_HANDLES = "raise the limit of open files (ulimit -n)"

_REMEDIES = {
    errno.EACCES: _RIGHTS,
    errno.EPERM: _RIGHTS,
    errno.EROFS: _RIGHTS,
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EFBIG: _ROOM,
    errno.EEXIST: _IN_THE_WAY,
    errno.ENOTDIR: _IN_THE_WAY,
    errno.EISDIR: _IN_THE_WAY,
    errno.ELOOP: _IN_THE_WAY,
    errno.EIO: _DISK,
    errno.ESTALE: _DISK,
    errno.EMFILE: _HANDLES,
    errno.ENFILE: _HANDLES,
}
# a folder is made where a file is, or the other way round: the system's own words name only half of it
_WORDS = {errno.EEXIST: "another file is already there"}


def refused_by_box(error: OSError) -> PaiError | None:
    """Returns the error if the controller host is the cause: missing permission, no space, an existing file. None for a
    bug.
    """
    remedy = _REMEDIES.get(error.errno or 0)
    if remedy is None or isinstance(error, ConnectionError):
        return None
    reason = _WORDS.get(error.errno or 0) or os.strerror(error.errno or 0)
    where = _path(error)
    return PaiError(
        f"cannot use {where}: {reason}" if where else f"cannot continue: {reason}",
        code="controller-host-refused",
        remedy=remedy,
        exit_code=ExitCode.PREFLIGHT_FAILED,
    )


def network_reason(error: BaseException) -> str:
    """Returns why a server was not reached, without numbers of the operating system."""
    # urllib wraps the cause in an error of its own.
    cause = getattr(error, "reason", error)
    if isinstance(cause, socket.gaierror):
        return "the host name has no address"
    if isinstance(cause, TimeoutError):
        return "no answer in time"
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"the certificate is not trusted: {cause.verify_message}"
    if isinstance(cause, OSError) and cause.errno and not isinstance(cause, ssl.SSLError):
        return os.strerror(cause.errno).lower()
    return str(cause) or type(cause).__name__


def _path(error: OSError) -> str:
    name = error.filename2 or error.filename
    return os.fsdecode(name) if isinstance(name, str | bytes | os.PathLike) else ""
