"""Templates of pages, and what all pages have: navigation, language, and the caller. Every value is escaped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.datastructures import Headers, QueryParams
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, Response

from pai_install.console.caller import Caller
from pai_install.console.cookies import set_cookie
from pai_install.console.pages.texts import LANGUAGE_COOKIE, LANGUAGES, Texts, language_of, texts_of
from pai_install.console.settings import ConsoleSettings, MenuLink
from pai_install.system.plain import plain_text

FOLDER = Path(__file__).parent / "templates"
# a sign beside each state: no state is shown by its colour alone
SIGNS: Mapping[str, str] = {
    "WAITING": "○",
    "STARTING": "◔",
    "RUNNING": "▶",
    "STOPPING": "◼",
    "STOPPED": "◼",
    "SUCCEEDED": "✓",
    "FAILED": "✕",
}
# key of the text, address, and whether it is for administrators alone
MENU = (
    ("home", "/", False),
    ("jobs", "/jobs", False),
    ("templates", "/templates", False),
    ("virtual_clusters", "/virtual-clusters", False),
    ("nodes", "/nodes", False),
    ("health", "/health", True),
    ("services", "/services", True),
    ("runs", "/runs", True),
    ("users", "/users", False),
    ("storages", "/storages", False),
    ("account", "/account", False),
)
_LANGUAGE = "lang"
# bytes of a log in a page
_LARGEST_LOG = 200 * 1024
# of a character: hidden ones are shown as \u001b
_WIDEST = 6
_LANGUAGE_S = 365 * 86400


@dataclass(frozen=True, slots=True)
class Frame:
    """What is around the content of a page.

    caller: None without a session. form: token of forms. path, query: of the page. chosen: whether the query chooses
    the language. placed: whether the page has a place in the menu. links: pages of others, after the menu.
    """

    language: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    caller: Caller | None = None
    form: str = ""
    chosen: bool = False
    placed: bool = True
    links: tuple[MenuLink, ...] = ()

    @property
    def texts(self) -> Texts:
        """The texts of its language."""
        return texts_of(self.language)

    @property
    def menu(self) -> list[tuple[str, str, bool]]:
        """Text key, address, and whether it is the page's own place."""
        if self.caller is None:
            return []
        shown = [(key, path) for key, path, administrators in MENU if self.caller.admin or not administrators]
        return [(f"menu.{key}", path, self._is_at(path)) for key, path in shown]

    @property
    def languages(self) -> list[tuple[str, str, str]]:
        """Code, own name, and address of the page in every other language."""
        kept = [one for one in self.query if one[0] != _LANGUAGE]
        return [
            (code, name, f"{self.path}?{urlencode([*kept, (_LANGUAGE, code)])}")
            for code, name in LANGUAGES.items()
            if code != self.language
        ]

    def _is_at(self, path: str) -> bool:
        return self.placed and self._is_below(path)

    def _is_below(self, path: str) -> bool:
        return self.path == path or (path != "/" and self.path.startswith(f"{path}/"))


def frame_of(
    headers: Headers,
    query: QueryParams,
    path: str,
    settings: ConsoleSettings,
    caller: Caller | None = None,
    form: str = "",
) -> Frame:
    """The frame of a page for a request."""
    wanted = query.get(_LANGUAGE, "")
    kept = cookie_parser(headers.get("cookie", "")).get(LANGUAGE_COOKIE, "")
    language = next((one for one in (wanted, kept) if one in LANGUAGES), "")
    language = language or language_of(headers.get("accept-language", ""), settings.language)
    fields, chosen = tuple(query.multi_items()), wanted in LANGUAGES
    return Frame(language, path, fields, caller, form, chosen=chosen, links=settings.links)


def duration(start: str, end: str = "", now: datetime | None = None) -> str:
    """The time between two times of Kubernetes, or until now: `3:02`, `6 d`. "" for an unknown start."""
    try:
        until = datetime.fromisoformat(end) if end else now or datetime.now(UTC)
        found = until - datetime.fromisoformat(start)
    except (ValueError, TypeError):
        return ""
    return span(found.total_seconds())


def span(seconds: float) -> str:
    """Hours and minutes, or days: `3:02`, `6 d`."""
    found = timedelta(seconds=max(0.0, seconds))
    if found.days:
        return f"{found.days} d"
    return f"{found.seconds // 3600}:{found.seconds // 60 % 60:02}"


def last_part(text: str) -> str:
    """The last whole lines of a log that a page has room for."""
    kept: list[str] = []
    left = _LARGEST_LOG
    for line in reversed(text[-_LARGEST_LOG:].split("\n")):
        left -= len(escape(plain_text(line)).encode()) + 1
        if left < 0:
            break
        kept.append(line)
    return "\n".join(reversed(kept)) if any(kept) else text[-_LARGEST_LOG // _WIDEST :]


def _shown(value: object) -> object:
    """A text of a user or a machine without characters that hide or turn others. Markup is our own."""
    return plain_text(value) if isinstance(value, str) and not isinstance(value, Markup) else value


_ENVIRONMENT = Environment(
    loader=FileSystemLoader(FOLDER),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    finalize=_shown,
)
_ENVIRONMENT.filters["as_written"] = escape  # of a field, whose text is sent back
_ENVIRONMENT.globals |= {"signs": SIGNS, "duration": duration, "span": span}


def rendered(frame: Frame, template: str, status: int = 200, **values: Any) -> Response:  # noqa: ANN401 - any value
    """A page. A language that its address chooses is kept."""
    content = _ENVIRONMENT.get_template(template).render(frame=frame, t=frame.texts, **values)
    response = HTMLResponse(content, status, headers={"Content-Language": frame.language})
    if frame.chosen:
        set_cookie(response, LANGUAGE_COOKIE, frame.language, _LANGUAGE_S)
    return response
