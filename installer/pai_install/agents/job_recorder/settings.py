"""Settings: the JSON file that the role writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pai_install.agents.common.values import parse_object
from pai_install.agents.job_recorder.limits import Limit, read_limits
from pai_install.agents.job_recorder.store import PODS, Rules


@dataclass(frozen=True)
class Settings:
    """server: URL of the API. kinds: GROUP/RESOURCE of jobs. limits: of use, by virtual cluster.

    ledger_months: complete months to keep. reads_kueue: whether Kueue queues the jobs.
    """

    server: str
    kinds: tuple[str, ...]
    rules: Rules
    limits: Mapping[str, tuple[Limit, ...]] = field(default_factory=dict)
    ledger_months: int = 13
    reads_kueue: bool = False


def read(path: Path) -> Settings:
    """Raises OSError, ValueError, TypeError, or KeyError for an invalid file."""
    found = parse_object(path.read_text())
    kinds = tuple(found["kinds"])
    spaces, watched = frozenset(found["namespaces"]), frozenset((*kinds, PODS))
    rules = Rules(found["keep_days"], found["most"], found["log_bytes"], spaces, watched)
    limits = read_limits(found["limits"])
    return Settings(found["server"], kinds, rules, limits, found["ledger_months"], found["reads_kueue"])
