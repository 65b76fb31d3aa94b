"""The console of a site, from its section and from OpenPAI's rest-server, webportal, and pylon. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from pydantic import SecretStr

from pai_install.site.groups import groups_of
from pai_install.site.model import Site
from pai_install.site.schedulers import scheduler_of
from pai_install.site.services.console import HTTP_PORT, HTTPS_PORT, Console, Rates, SignIn
from pai_install.site.services.openpai import Plugin, Pylon, RestServer, Ssl, Webportal

_LIFE = re.compile(r"(\d+)\s*([smhd])?")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_MOST_HOURS = 168
# The console takes no other address of a link. A name before @ looks like the host.
_PAGE = re.compile(r"https?://(\[[0-9A-Fa-f:]+\]|[\w.-]+)(:[0-9]{1,5})?(?P<path>/[^?#\s]*)?([?#]\S*)?", re.ASCII)
_SCRIPT = re.compile(r"[.]m?js$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SiteConsole:
    """All settings of the console.

    names: host names and addresses, the first one for links. http_port, web_port: 0 if it is closed. web_port: of pages
    in jobs. legacy: ports of OpenPAI's API and pages, or (). certificate, key: PEM of the site's own, or "" and None.
    links: title and address of pages in the menu.
    """

    names: tuple[str, ...]
    port: int
    http_port: int
    web_port: int
    legacy: tuple[int, ...]
    certificate: str
    key: SecretStr | None
    passwords: bool
    hide_users: bool
    sign_in: SignIn
    rates: Rates
    language: str
    links: tuple[tuple[str, str], ...]

    @property
    def ports(self) -> tuple[int, ...]:
        """All ports that it listens on."""
        return tuple(port for port in (self.port, self.http_port, self.web_port, *self.legacy) if port)


def has_console(site: Site) -> bool:
    """Whether the site gets it: groups and a scheduler are there, and the section does not switch it off."""
    section = site.services.console
    wanted = section is None or section.enabled
    return wanted and bool(groups_of(site.services)) and scheduler_of(site) is not None


def console_of(site: Site) -> SiteConsole | None:
    """The console of a site, or None. A key of the section `console` precedes the one of OpenPAI's."""
    if not has_console(site):
        return None
    services, section = site.services, site.services.console or Console()
    rest, pylon = services.rest_server or RestServer(), services.pylon or Pylon()
    portal, given = services.webportal or Webportal(), section.model_fields_set
    ssl = pylon.ssl or Ssl()
    return SiteConsole(
        names=tuple(dict.fromkeys((*own_names(site), *_machines(site)))),
        port=section.port if "port" in given else ssl.port,
        http_port=(pylon.port if pylon.port != HTTPS_PORT else HTTP_PORT) if section.http else 0,
        # pods of a group would reach the pages of their colleagues
        web_port=section.web_port if site.settings.group_isolation else 0,
        legacy=(rest.server_port, portal.server_port) if section.legacy_ports else (),
        certificate=section.certificate or "",
        key=section.key,
        passwords=section.passwords,
        hide_users=section.hide_users,
        sign_in=_sign_in(section, rest),
        rates=_rates(section, rest),
        language=section.language,
        links=tuple(link for plugin in portal.plugins if (link := link_of(plugin)) is not None),
    )


def own_names(site: Site) -> tuple[str, ...]:
    """The host names that the site gives the console, without those of its control planes."""
    section, pylon = site.services.console or Console(), site.services.pylon or Pylon()
    return tuple(dict.fromkeys((*section.names, *openpai_names(pylon))))


def addresses(site: Site) -> tuple[str, ...]:
    """The URLs of the console: the one of its first name, or one for each control plane."""
    console = console_of(site)
    if console is None:
        return ()
    hosts = own_names(site)[:1] or tuple(machine.hostip for machine in site.control_planes)
    port = "" if console.port == HTTPS_PORT else f":{console.port}"
    return tuple(f"https://{host}{port}/" for host in hosts)


def job_address(console: str, user: str, job: str) -> str:
    """The page of a job. console: one of `addresses`."""
    return f"{console}jobs/{quote(f'{user}~{job}', safe='~')}"


def _machines(site: Site) -> Iterator[str]:
    for machine in site.control_planes:
        yield machine.hostip
    for machine in site.control_planes:
        yield machine.hostname


def openpai_names(pylon: Pylon) -> Iterator[str]:
    """The host names in pylon's keys. Addresses are those of machines, which are there anyway."""
    for text in (pylon.domain, pylon.uri):
        host = urlsplit(text if "//" in text else f"//{text}").hostname if text else None
        if host and not re.fullmatch(r"[\d.]+", host):
            yield host


def link_of(plugin: Plugin) -> tuple[str, str] | None:
    """Title and address of the page of a plugin, None for a script and for an address without a host."""
    title, found = plugin.title or "", _PAGE.fullmatch(plugin.uri or "")
    if found is None or _SCRIPT.search(found["path"] or "") or not title or not (title + found[0]).isprintable():
        return None
    return title, found[0]


def _sign_in(section: Console, rest: RestServer) -> SignIn:
    hours = session_hours(rest)
    if hours is None or "session_hours" in section.sign_in.model_fields_set:
        return section.sign_in
    return section.sign_in.model_copy(update={"session_hours": hours})


def session_hours(rest: RestServer) -> int | None:
    """OpenPAI's life of tokens, such as 7d or a number of seconds, within our limits. None without one."""
    found = _LIFE.fullmatch(rest.jwt_expire_time.strip()) if rest.jwt_expire_time else None
    if found is None:
        return None
    seconds = int(found[1]) * _SECONDS[found[2] or "s"]
    return min(max(seconds // 3600, 1), _MOST_HOURS)


def openpai_rates(rest: RestServer) -> dict[str, int]:
    """Key of `rates` -> OpenPAI's limit, of those that the file has."""
    found = {
        "api_per_min": rest.rate_limit_api_per_min,
        "list_per_min": rest.rate_limit_list_job_per_min,
        "submit_per_hour": rest.rate_limit_submit_job_per_hour,
    }
    return {name: value for name, value in found.items() if value}


def _rates(section: Console, rest: RestServer) -> Rates:
    own = section.rates.model_fields_set
    inherited = {name: value for name, value in openpai_rates(rest).items() if name not in own}
    return section.rates.model_copy(update=inherited)
