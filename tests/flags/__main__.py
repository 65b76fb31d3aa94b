"""`python -m tests.flags NAME...`: writes the help texts anew, of the programs that are on PATH.

PATH decides whose they are. For Debian's: `apt-get download` the packages of the oldest supported release,
`dpkg --extract` them into a folder, and put its bin and sbin first into PATH, its libraries into LD_LIBRARY_PATH and
its xtables into XTABLES_LIBDIR. For the catalogue's: the programs of its oldest Kubernetes and of what goes with it.
"""

from __future__ import annotations

import re
import subprocess
import sys

from tests.flags.texts import RECORDED, TEXTS

for name in sys.argv[1:] or RECORDED:
    source, *commands = RECORDED[name]
    parts = [f"# {source}: {'; '.join(commands)}\n"]
    for command in commands:
        said = subprocess.run(command.split(), capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        text = said.stdout + said.stderr
        parts.append("".join(f"{line.rstrip()}\n" for line in re.sub(r"\x1b\[[\d;]*m", "", text).splitlines()))
    (TEXTS / f"{name}.txt").write_text("".join(parts), encoding="utf-8")
