"""Values that readers share."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import pytest

from pai_install.console.model.recent import Recent, RecentByKey


@dataclass
class Source:
    """Counts how often its value is made, and has a clock."""

    now: float = 100.0
    made: int = 0

    def make(self) -> int:
        self.made += 1
        return self.made

    def clock(self) -> float:
        return self.now


def test_readers_share_a_value_for_its_time() -> None:
    source = Source()
    recent = Recent(source.make, 5, source.clock)
    assert [recent.get(), recent.get()] == [1, 1]
    source.now += 5
    assert recent.get() == 2
    recent.forget()
    assert recent.get() == 3


def test_readers_do_not_wait_while_a_thread_renews() -> None:
    source = Source()
    recent = Recent(source.make, 5, source.clock, renewed=True)
    assert recent.get() == 1
    source.now += 6
    assert recent.get() == 1
    recent.refresh()
    recent.refresh()
    assert (recent.get(), source.made) == (2, 2)
    source.now += 31
    assert recent.get() == 3, "the thread is late"


def test_what_no_one_asks_for_is_not_renewed() -> None:
    source = Source()
    recent = Recent(source.make, 5, source.clock, renewed=True)
    recent.refresh()
    assert source.made == 0
    recent.get()
    source.now += 61
    recent.refresh()
    assert source.made == 1


def test_an_error_reaches_the_reader_and_is_not_kept() -> None:
    found: list[int] = []

    def make() -> int:
        if not found:
            raise ValueError("no")
        return found[0]

    recent = Recent(make, 5)
    with pytest.raises(ValueError, match="no"):
        recent.get()
    found.append(7)
    assert recent.get() == 7


def test_readers_at_once_make_one_value() -> None:
    source, begun = Source(), threading.Event()

    def make() -> int:
        begun.wait(5)
        return source.make()

    recent = Recent(make, 5)
    threads = [threading.Thread(target=recent.get) for _ in range(4)]
    for one in threads:
        one.start()
    begun.set()
    for one in threads:
        one.join()
    assert source.made == 1


def test_values_by_key_count_for_their_time_and_while_they_are_usable() -> None:
    source = Source()
    recent = RecentByKey[str, int](5, 2, source.clock)
    assert [recent.get("a", source.make), recent.get("a", source.make), recent.get("b", source.make)] == [1, 1, 2]
    assert recent.get("a", source.make, lambda value: value != 1) == 3
    source.now += 5
    assert recent.get("b", source.make) == 4


def test_the_oldest_keys_are_forgotten() -> None:
    source = Source()
    recent = RecentByKey[str, int](5, 2, source.clock)
    for key in ("a", "b", "a", "c"):
        recent.get(key, source.make)
    assert [recent.get("c", source.make), recent.get("b", source.make), recent.get("a", source.make)] == [3, 2, 4]
