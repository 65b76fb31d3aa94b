"""Memory of the process: what the C library keeps of it, and the buffer of each TLS connection."""

from __future__ import annotations

import ctypes
import gc
from asyncio import sslproto

# of mallopt(3)
_MMAP_THRESHOLD, _ARENA_MAX = -3, -8
_LARGE, _ARENAS = 1 << 20, 2
# requests are small. asyncio has 256 KiB for each of hundreds of browsers
_READ = 16 * 1024


def limit_memory() -> None:
    """Gives large blocks back to the system when they are free, shares few arenas among threads, and reads in pieces.

    The variables MALLOC_* have no effect on a program with capabilities of its file.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGE)
        mallopt(_ARENA_MAX, _ARENAS)
    sslproto.SSLProtocol.max_size = _READ


def keep_loaded_objects() -> None:
    """Takes the objects that exist now out of later searches for garbage.

    Python stops all threads while it searches. With the objects of 10,000 jobs, that is most of a second each time.
    """
    gc.collect()
    gc.freeze()
