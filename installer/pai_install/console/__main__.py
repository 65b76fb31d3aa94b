"""`python -m pai_install.console --settings FILE`: the program of the console's image."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from pai_install.console.connect import open_services
from pai_install.console.memory import limit_memory
from pai_install.console.serve import serve
from pai_install.console.settings import read_settings
from pai_install.errors import PaiError


def main() -> int:
    """Serves until a signal. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="pai_install.console", description="Serve the console of a cluster.")
    parser.add_argument("--settings", type=Path, required=True, metavar="FILE", help="JSON file with the settings")
    arguments = parser.parse_args()
    limit_memory()
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        settings = read_settings(arguments.settings)
        serve(settings, open_services(settings))
    except PaiError as error:
        sys.stderr.write(f"{error.message}\n{error.details}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
