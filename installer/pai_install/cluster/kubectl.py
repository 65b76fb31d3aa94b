"""A client of the Kubernetes API by calls of kubectl, which a Transport executes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from pai_install.agents.common.values import InvalidJsonError, parse_all
from pai_install.cluster import calls
from pai_install.cluster.api_errors import reason_of, refusal
from pai_install.cluster.client import (
    CommandOutput,
    Eviction,
    EvictionOutcome,
    Impersonation,
    LogWindow,
    Patch,
    Select,
    Token,
    WatchEvent,
)
from pai_install.cluster.transport import Answer, Call, Reply, Transport
from pai_install.errors import PaiError
from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject, child, rows, text
from pai_install.system.plain import plain, plain_text

_LOG_LINE = re.compile(r"^\[pod/([^/\]]+)/[^\]]*\] ?(.*)$")
# bytes and values of an answer: 10,000 pods have some 10 million values
_MAX_OUTPUT = 1 << 30
_COMMAND_FAILED = "command terminated with exit code"
_NONE_SELECTED = "no matching resources found"


class KubectlClient:
    """See ClusterClient for results and errors of each method."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get(self, refs: Sequence[Ref]) -> tuple[JsonObject | None, ...]:
        """Returns the objects, with None for missing ones."""
        reply = self._run([calls.get(ref) for ref in refs])
        return tuple(next(iter(_objects(reply.host, answer)), None) for answer in reply.answers)

    def list(self, *selects: Select) -> tuple[tuple[JsonObject, ...], ...]:
        """The objects of each selection."""
        reply = self._run([calls.listing(select) for select in selects])
        return tuple(tuple(_objects(reply.host, answer)) for answer in reply.answers)

    def raw(self, path: str) -> str:
        """A path of the API server."""
        return self._run([calls.raw(path)]).answers[0].stdout

    def watch(self, select: Select) -> Iterator[WatchEvent]:
        """Each change as it happens."""
        for line in self._transport.lines(calls.watch(select)):
            for row in _parse("the watch", line):
                yield WatchEvent(text(row.get("type")), child(row, "object"))

    def apply(self, objects: Sequence[JsonObject], *, force: bool = False) -> tuple[JsonObject, ...]:
        """Server-side apply."""
        return self._changed([calls.apply(objects, force=force)] if objects else [])

    def create(self, objects: Sequence[JsonObject]) -> tuple[JsonObject, ...]:
        """Makes new objects."""
        return self._changed([calls.create(objects)] if objects else [])

    def dry_run(self, objects: Sequence[JsonObject], identity: Impersonation | None = None) -> None:
        """Asks whether an identity may create objects."""
        self._run([calls.dry_run(objects, identity)] if objects else [])

    def patch(self, patches: Sequence[Patch]) -> tuple[JsonObject, ...]:
        """Changes objects in order."""
        return self._changed([calls.patch(patch) for patch in patches])

    def delete(self, refs: Sequence[Ref], *, wait_s: float = 0) -> None:
        """Deletes objects."""
        self._run([calls.delete(group, wait_s) for group in _groups(refs)])

    def delete_selected(self, select: Select, *, wait_s: float = 0) -> None:
        """Deletes a selection."""
        self._run([calls.delete_selected(select, wait_s)])

    def wait(self, select: Select | Sequence[Ref], condition: str, timeout_s: float) -> bool:
        """Whether all objects came to a condition in time."""
        if isinstance(select, Select):
            asked = [calls.wait_for(select, condition, timeout_s)]
        else:
            asked = [calls.wait_for(group, condition, timeout_s) for group in _groups(select)]
        reply = self._run(asked)
        for call, answer in zip(asked, reply.answers, strict=True):
            if not answer.ok and reason_of(answer.stderr) != "Timeout" and _NONE_SELECTED not in answer.stderr:
                raise refusal(reply.host, call, answer)
        return all(answer.ok for answer in reply.answers)

    def exec(
        self, pod: Ref, argv: Sequence[str], *, container: str = "", stdin: str = "", timeout_s: float = 60
    ) -> CommandOutput:
        """Runs a command in a container."""
        call = calls.execute(pod, argv, container, stdin, timeout_s)
        reply = self._run([call])
        answer = reply.answers[0]
        if answer.returncode is None or not (answer.ok or _COMMAND_FAILED in answer.stderr):
            raise refusal(reply.host, call, answer)
        return CommandOutput(answer.returncode, answer.stdout, answer.stderr)

    def logs(self, pod: Ref, *, container: str = "", tail: int = -1, previous: bool = False) -> str:
        """A container's log."""
        return self._run([calls.logs(pod, container, tail, previous=previous)]).answers[0].stdout

    def logs_of(self, select: Select, *, tail: int = -1) -> Mapping[str, str]:
        """Returns pod -> log. Readable logs are returned even if another pod has no log yet."""
        found: dict[str, list[str]] = {}
        for line in self._run([calls.logs_of(select, tail)]).answers[0].stdout.splitlines():
            if match := _LOG_LINE.match(line):
                found.setdefault(match[1], []).append(match[2])
        return {pod: "\n".join(lines) for pod, lines in found.items()}

    def log_lines(self, pod: Ref, window: LogWindow, *, container: str = "") -> Iterator[str]:
        """A log line by line."""
        yield from self._transport.lines(calls.log_lines(pod, window, container))

    def evict(self, pods: Sequence[Ref], *, grace_s: int | None = None) -> tuple[Eviction, ...]:
        """Asks for evictions."""
        asked = [calls.evict(pod, grace_s) for pod in pods]
        reply = self._run(asked)
        return tuple(
            _eviction(reply.host, pod, call, answer)
            for pod, call, answer in zip(pods, asked, reply.answers, strict=True)
        )

    def request_token(self, account: Ref, lasting_s: int, bound: JsonObject) -> Token:
        """A token of a service account."""
        (made,) = self._changed([calls.request_token(account, lasting_s, bound)])
        status = child(made, "status")
        return Token(text(status.get("token")), text(status.get("expirationTimestamp")))

    def _changed(self, asked: Sequence[Call]) -> tuple[JsonObject, ...]:
        reply = self._run(asked)
        return tuple(item for answer in reply.answers for item in _objects(reply.host, answer))

    def _run(self, asked: Sequence[Call]) -> Reply:
        """The answers of all calls. Raises ApiError for the first that failed and may not."""
        if not asked:
            return Reply("", ())
        reply = self._transport.run(asked)
        for call, answer in zip(asked, reply.answers, strict=False):
            if not (answer.ok or call.may_fail):
                raise refusal(reply.host, call, answer)
        if len(reply.answers) != len(asked):
            raise PaiError(
                f"{reply.host} answered {len(reply.answers)} of {len(asked)} requests",
                code="kubectl-answers-incomplete",
            )
        return reply


def _groups(refs: Sequence[Ref]) -> Iterator[tuple[Ref, ...]]:
    """Yields the refs by namespace and kind, for one call of kubectl each, in any order."""

    def key(ref: Ref) -> tuple[str, str]:
        return ref.namespace, ref.kind

    return (tuple(group) for _, group in groupby(sorted(refs, key=key), key))


def _objects(host: str, answer: Answer) -> Iterator[JsonObject]:
    """The objects that kubectl printed: one, several in a row, or lists."""
    for item in _parse(host, answer.stdout):
        if isinstance(item.get("items"), list):
            yield from rows(item["items"])
        else:
            yield item


def _parse(source: str, output: str) -> Iterable[JsonObject]:
    """The JSON documents in a text. Raises PaiError for anything else."""
    try:
        found = parse_all(output, max_size=_MAX_OUTPUT, max_values=_MAX_OUTPUT)
    except InvalidJsonError as error:
        raise PaiError(
            f"{source} returned no JSON: {error}", code="kubectl-answer-not-json", details=plain_text(output[:400])
        ) from error
    if not all(isinstance(item, dict) for item in found):
        raise PaiError(
            f"{source} returned no JSON object", code="kubectl-answer-not-an-object", details=plain_text(output[:400])
        )
    return [plain(item) for item in found]


def _eviction(host: str, pod: Ref, call: Call, answer: Answer) -> Eviction:
    said = (answer.stderr or answer.stdout).strip()
    if answer.ok:
        return Eviction(pod, EvictionOutcome.EVICTED)
    reason = reason_of(answer.stderr)
    if reason == "NotFound":
        return Eviction(pod, EvictionOutcome.GONE)
    if reason == "TooManyRequests" or "PodDisruptionBudget" in said or "disruption budget" in said:
        return Eviction(pod, EvictionOutcome.BLOCKED, said)
    raise refusal(host, call, answer)
