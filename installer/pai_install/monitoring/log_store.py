"""Questions to the store of logs, and lines in its answers. Pure.

A stored line is a line of the kubelet's file: time, stream, F or P, and the text. Its field `file` is the path of this
file, so that it names the pod, whatever the pod wrote.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from pai_install.agents.common.values import InvalidJsonError, parse_object, text
from pai_install.ports import LOG_STORE_PORT

NAMESPACE = "pai-logs"
LABELS = "app.kubernetes.io/name=logs"
PATH = "/select/logsql/query"
# the store answers on the loopback of its machine alone; every machine has Python
_SCRIPT = """
import sys, urllib.parse, urllib.request as u
url, *pairs = sys.argv[1:]
body = urllib.parse.urlencode(dict(pair.split("=", 1) for pair in pairs)).encode()
answer = u.build_opener(u.ProxyHandler({})).open(url, body, timeout=60)
with open(1, "wb") as output:
    output.writelines(answer)
"""
# lines of one answer
PAGE = 20_000
# of one line: the runtime divides lines of more than 16 KiB
MAX_LINE = 256 * 1024
_MOST_FILES = 1_000
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_FILE = re.compile(r"/var/log/pods/([a-z0-9.-]+)_([a-z0-9.-]+)_[^/]+/([a-z0-9.-]+)/[0-9]+\.log")
_LINE = re.compile(r"(\S+) (?:stdout|stderr) ([FP])(?: (.*))?", re.DOTALL)

Parameters = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StoredLog:
    """The log of a container. container: "" for all of the pod."""

    namespace: str
    pod: str
    container: str = ""


@dataclass(frozen=True, slots=True)
class StoredLine:
    """A line of a file. at: when it was read, as the store writes it. whole: whether the line ends here."""

    at: str
    file: str
    written: str
    whole: bool
    text: str


def query_program(parameters: Parameters) -> tuple[str, ...]:
    """Returns the program that prints the answer of the store on its machine."""
    url = f"http://127.0.0.1:{LOG_STORE_PORT}{PATH}"
    return ("python3", "-I", "-c", _SCRIPT, url, *(f"{name}={value}" for name, value in parameters.items()))


def lines_query(log: StoredLog, lines: int, since: str = "") -> Parameters:
    """The question for the last lines, or for the first ones since a time if lines is 0. Raises ValueError."""
    container = _literal(log.container) if log.container else "[^/]+"
    wanted = _files(_literal(log.namespace), _literal(log.pod), container)
    order = f"sort by (_time desc) limit {lines}" if lines else f"sort by (_time) limit {PAGE}"
    parameters = {"query": f"{wanted} | {order} | fields _time, _msg, file", **_within(log.namespace)}
    return {**parameters, "start": since} if since else parameters


def files_query(pod: str, namespace: str = "") -> Parameters:
    """The question for the files of pods of this name, in all namespaces for "". Raises ValueError."""
    wanted = _files(_literal(namespace) if namespace else "[^_/]+", _literal(pod), "[^/]+")
    parameters = {"query": f"{wanted} | uniq by (file) limit {_MOST_FILES}"}
    return {**parameters, **_within(namespace)} if namespace else parameters


def _within(namespace: str) -> Parameters:
    """Forces the files of a namespace, whatever the query."""
    # A query may contain OR or pipes. The store applies this filter to all of it.
    return {"extra_stream_filters": f'{{file=~"^/var/log/pods/{_literal(namespace)}_.+$"}}'}


def _files(namespace: str, pod: str, container: str) -> str:
    return f'{{file=~"^/var/log/pods/{namespace}_{pod}_[^/]+/{container}/[0-9]+[.]log$"}}'


def _literal(name: str) -> str:
    """A name as an expression that is this name."""
    if not _NAME.fullmatch(name):
        raise ValueError("it is no name of Kubernetes")
    # A dot is any character in an expression, and would match files of another pod.
    return name.replace(".", "[.]")


def lines_in(answer: Iterable[str]) -> Iterator[StoredLine]:
    """The lines of an answer. A line that is none is skipped."""
    for line in answer:
        found = _fields(line)
        content = text(found.get("_msg"))
        parts = _LINE.fullmatch(content)
        written, mark, words = parts.groups() if parts else ("", "F", content)
        if found:
            yield StoredLine(text(found.get("_time")), text(found.get("file")), written, mark == "F", words or "")


def logs_in(answer: Iterable[str]) -> tuple[StoredLog, ...]:
    """The containers of an answer with files, sorted."""
    found = (_FILE.fullmatch(text(_fields(line).get("file"))) for line in answer)
    return tuple(sorted({StoredLog(*it.groups()) for it in found if it}, key=lambda it: (it.namespace, it.pod)))


def _fields(line: str) -> Mapping[str, object]:
    try:
        return parse_object(line, max_size=2 * MAX_LINE)
    except InvalidJsonError:
        return {}


def texts(found: Iterable[StoredLine], since: float | None = None) -> Iterator[str]:
    """The texts as the pod wrote them: divided lines are joined up to a limit, lines before a time are left out."""
    begun: dict[str, str] = {}
    for line in found:
        if since is not None and _is_before(line.written, since):
            continue
        # containerd cuts long lines. A pod that never ends a line must not fill memory.
        whole = (begun.pop(line.file, "") + line.text)[:MAX_LINE]
        if line.whole:
            yield whole
        else:
            begun[line.file] = whole
    yield from begun.values()


def _is_before(written: str, since: float) -> bool:
    try:
        return datetime.fromisoformat(written).timestamp() < since
    except (ValueError, OverflowError):
        return False


def all_lines(query: Callable[[Parameters], Iterable[str]], log: StoredLog, since: str = "") -> Iterator[StoredLine]:
    """All lines of a log, page by page. query: returns the lines of an answer."""
    while True:
        page = list(lines_in(query(lines_query(log, 0, since))))
        if len(page) < PAGE:
            yield from page
            return
        # lines of the last moment may be on the next page too
        last = page[-1].at
        # Pages begin at a time, and several lines may have the same one.
        kept = [line for line in page if line.at != last]
        # A whole page of one moment: the next question would return the same page without end.
        if not kept:
            yield from page
            return
        yield from kept
        since = last


def last_lines(query: Callable[[Parameters], Iterable[str]], log: StoredLog, lines: int) -> Iterator[StoredLine]:
    """The last lines of a log."""
    yield from reversed(list(lines_in(query(lines_query(log, lines)))))
