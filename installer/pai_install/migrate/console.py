"""The section console of a current site, from OpenPAI's rest-server, webportal, and pylon. Pure but for files there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pai_install.migrate.emit import scalar
from pai_install.site.console import openpai_names, openpai_rates, session_hours
from pai_install.site.services import Services
from pai_install.site.services.console import HTTPS_PORT
from pai_install.site.services.openpai import Pylon, RestServer, Ssl

_HEAD = "\n\n# From rest-server and pylon, which need not stay. docs/console.md explains the keys.\nconsole:\n"


def console_text(services: Services) -> str:
    """The section as YAML, "" if nothing of OpenPAI's sections differs from its defaults, or the file has it."""
    if services.console is not None:
        return ""
    lines = list(_lines(services.rest_server or RestServer(), services.pylon or Pylon()))
    return _HEAD + "".join(f"  {line}\n" for line in lines) if lines else ""


def _lines(rest: RestServer, pylon: Pylon) -> Iterator[str]:
    if names := tuple(dict.fromkeys(openpai_names(pylon))):
        yield f"names: [{', '.join(map(scalar, names))}]"
    ssl = pylon.ssl or Ssl()
    if ssl.port != HTTPS_PORT:
        yield f"port: {ssl.port}"
    yield from _certificate(ssl)
    if (hours := session_hours(rest)) is not None:
        yield f"sign-in: {{session-hours: {hours}}}"
    if rates := openpai_rates(rest):
        limits = (f"{name.replace('_', '-')}: {value}" for name, value in rates.items())
        yield f"rates: {{{', '.join(limits)}}}"
    if pylon.deploy_service is False:
        yield "legacy-ports: true"


def _certificate(ssl: Ssl) -> Iterator[str]:
    """Certificate and key where both are files of this host. Otherwise the site's authority signs one."""
    if not ssl.crt_path or not ssl.key_path:
        return
    pair = (_file(ssl.crt_path, ssl.crt_name), _file(ssl.key_path, ssl.key_name))
    if all(path.is_file() for path in pair):
        yield f"certificate: {scalar(str(pair[0]))}"
        yield f"key: {{file: {scalar(str(pair[1]))}}}"
    else:
        yield f"# certificate: {scalar(ssl.crt_path)} and its key are not on this host"


def _file(path: str, name: str | None) -> Path:
    """The file itself, or the file of that name in the folder."""
    found = Path(path)
    return found / name if name and found.is_dir() else found
