"""How a scheduler keeps quotas, as far as neutral code has to know it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QuotaRules:
    """Rules of one scheduler.

    lends: idle guarantees are lent, and reclaimed. lends_to_oppo: only to jobs of priority oppo, which have no
    guarantee of their own, and without a limit. preempts: a job may take quota from jobs of lower priority in the same
    virtual cluster. counts_cores: cores and memory are counted, not devices alone. has_cells: every pod holds at least
    one cell, and all pods of a job are on one machine type.
    """

    lends: bool = False
    lends_to_oppo: bool = False
    preempts: bool = False
    counts_cores: bool = False
    has_cells: bool = False

    @property
    def has_limits(self) -> bool:
        """Whether `lend` and `borrow` of a share count."""
        return self.lends and not self.lends_to_oppo
