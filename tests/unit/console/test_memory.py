"""Memory that many threads used goes back to the system, and TLS connections have small buffers."""

from __future__ import annotations

import os
import subprocess
import sys
from asyncio import sslproto

from pai_install.console.memory import _READ

_PROGRAM = """
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from asyncio import sslproto
from pai_install.console.memory import limit_memory
from pai_install.console.sign_in.hashing import hashed

def resident():
    return int(re.search(r"VmRSS:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) >> 10

limit_memory()
hashed("a password")
before = resident()
with ThreadPoolExecutor(16) as threads:
    list(threads.map(hashed, ["a password"] * 64))
    print(resident() - before, sslproto.SSLProtocol.max_size)
"""


def test_hashes_of_many_threads_leave_no_memory_behind() -> None:
    """Without the limit, 16 threads keep more than 150 MiB."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", _PROGRAM], env=environment, capture_output=True, text=True, check=True)
    kept, size = map(int, done.stdout.split())
    assert kept < 30
    assert size == _READ


def test_this_python_has_the_buffer() -> None:
    assert sslproto.SSLProtocol.max_size >= _READ
