"""Use case of accounting: GPU hours of a period, from the ledgers of the control-plane nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, tzinfo
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from pai_install.agents.common.ledger import ALIVE_S, FILE, FOLDER, SUFFIX, Ledger, merged, read
from pai_install.app.context import App
from pai_install.cluster.client import NoClusterError
from pai_install.cluster.machines import MachineError
from pai_install.jobs.gpu_hours import Account, Key, LedgerNames, Period, account_of
from pai_install.profile.model import ClusterProfile
from pai_install.system.parameters import Parameter
from pai_install.system.words import plural, spoken_time

_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")
_MAX_MONTHS = 130
# each file ends with a line end, so that a torn line stays alone
_READ = 'for file do if [ -e "$file" ]; then cat -- "$file"; echo; fi; done'


class AccountUsage(BaseModel):
    """A period and how to divide it."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    start: Annotated[str, Parameter("--from", metavar="TIME", default="start of this month")] = Field(
        "", description="First moment: 2026-11, 2026-11-05, or 2026-11-05T08:00."
    )
    end: Annotated[str, Parameter("--to", metavar="TIME", default="now")] = Field(
        "", description="First moment after the period, in the same form."
    )
    by: Key = Field("user", description="Rows of the report.")
    timezone: Annotated[str, Parameter(metavar="NAME")] = Field(
        "UTC", description="Time zone of the times, for example Europe/Berlin."
    )

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, name: str) -> str:
        _zone(name)
        return name

    @model_validator(mode="after")
    def _in_order(self) -> AccountUsage:
        zone = _zone(self.timezone)
        start, end = (_moment(word, zone) if word else None for word in (self.start, self.end))
        if start is not None and end is not None and end <= start:
            raise ValueError(f"--to {self.end} is not after --from {self.start}")
        return self

    def period(self, now: int) -> Period:
        """The period in seconds. The future is not a part of it."""
        zone = _zone(self.timezone)
        first = datetime.fromtimestamp(now, zone).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        end = min(_moment(self.end, zone), now) if self.end else now
        start = _moment(self.start, zone) if self.start else int(first.timestamp())
        return Period(start, max(start, end))


def _zone(name: str) -> tzinfo:
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(f"{name!r} is no time zone: use a name such as Europe/Berlin") from error


def _moment(word: str, zone: tzinfo) -> int:
    """Raises ValueError for a text that is no time."""
    try:
        found = datetime.fromisoformat(f"{word}-01" if _MONTH.fullmatch(word) else word)
        return int((found if found.tzinfo is not None else found.replace(tzinfo=zone)).timestamp())
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{word!r} is no time: write 2026-11, 2026-11-05, or 2026-11-05T08:00") from error


def account_usage(app: App, request: AccountUsage, now: datetime | None = None) -> Account:
    """Returns the account. Says which control-plane nodes did not answer, and what is uncertain.

    Raises NoClusterError if no control-plane node answers.
    """
    at = int((now or datetime.now(UTC)).timestamp())
    period = request.period(at)
    ledger = _ledger(app, _paths(period, at))
    account = account_of(ledger, period, request.by, _names(app.profile), at)
    for line in _remarks(ledger, account, at):
        app.notify(line)
    return account


def _names(profile: ClusterProfile) -> LedgerNames:
    skus = profile.scheduling.skus if profile.scheduling is not None else {}
    return LedgerNames({group.namespace: group.name for group in profile.groups}, skus)


def _paths(period: Period, now: int) -> tuple[str, ...]:
    """Files of the months of the period, and of the next month, which may have the ends of the last pods."""
    first, last = (datetime.fromtimestamp(at, UTC) for at in (period.start, min(period.end, now)))
    months = range(first.year * 12 + first.month - 1, last.year * 12 + last.month + 1)
    return tuple(f"{FOLDER}/{FILE}{it // 12:04}-{it % 12 + 1:02}{SUFFIX}" for it in months[-_MAX_MONTHS:])


def _ledger(app: App, paths: Sequence[str]) -> Ledger:
    machines = app.machines
    hosts = [machine.hostname for machine in app.site.control_planes]

    def ledger_of(host: str) -> Ledger | MachineError:
        try:
            return read(machines.lines(host, ("sh", "-c", _READ, "sh", *paths)))
        except MachineError as error:
            return error

    with ThreadPoolExecutor(len(hosts)) as pool:
        found = dict(zip(hosts, pool.map(ledger_of, hosts), strict=True))
    down = {host: one.message for host, one in found.items() if isinstance(one, MachineError)}
    if len(down) == len(hosts):
        raise NoClusterError(down)
    for message in down.values():
        app.notify(f"{message}. Pods that only its ledger knows are missing")
    return merged(one for one in found.values() if isinstance(one, Ledger))


def _remarks(ledger: Ledger, account: Account, now: int) -> Iterator[str]:
    if not ledger.alive and not ledger.holds:
        yield "the ledger is empty for this period: the job recorder starts it when apply installs it"
    elif account.period.end >= now and now - ledger.alive > 2 * ALIVE_S:
        yield f"no recorder has written since {spoken_time(ledger.alive)}"
    if account.unseen:
        yield f"{plural(account.unseen, 'pod')} may have run longer: counted until a recorder saw them last"
    if account.estimated:
        yield f"the end of {plural(account.estimated, 'pod')} is estimated: no recorder worked when they ended"
    if ledger.damaged:
        yield f"{plural(ledger.damaged, 'line')} of the ledger cannot be read"
