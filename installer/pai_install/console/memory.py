"""Memory of the process: blocks that the C library keeps, searches for garbage, and the buffer of a TLS connection."""

from __future__ import annotations

import ctypes
import gc
from asyncio import sslproto

# of mallopt(3)
_MMAP_THRESHOLD, _ARENA_MAX = -3, -8
_LARGE, _ARENAS = 1 << 20, 2
# requests are small. asyncio has 256 KiB for each of hundreds of browsers
_READ = 16 * 1024
# Objects between two searches among new ones, and searches until the older ones are included. All objects together
# are searched by `keep_loaded_objects` alone: each such search would stop all answers for a tenth of a second and more.
_COLLECTIONS = (50_000, 20, 1_000_000)


def limit_memory() -> None:
    """Gives large free blocks back, shares few arenas among threads, seldom searches for garbage, and reads in pieces.

    The variables MALLOC_* have no effect on a program with capabilities of its file.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGE)
        mallopt(_ARENA_MAX, _ARENAS)
    sslproto.SSLProtocol.max_size = _READ
    gc.set_threshold(*_COLLECTIONS)


def keep_loaded_objects() -> None:
    """Takes the objects that exist now out of later searches for garbage.

    Python stops all threads while it searches. With the objects of 10,000 jobs, that is most of a second each time.
    """
    gc.collect()
    gc.freeze()
