"""How many machines at a time: never more than there are, never more than the controller host carries."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pai_install.engine import width
from pai_install.engine.width import FEWEST, MOST, MOST_BY_BASTION, by_bastion, forks, free_memory

GIB = 1 << 30


@given(st.integers(1, 5000), st.integers(1, 256), st.integers(0, 1024 * GIB), st.booleans())
def test_bounds(hosts: int, cores: int, memory: int, bastion: bool) -> None:
    found = forks(hosts, cores, memory, bastion=bastion)
    assert 1 <= found <= min(hosts, MOST)
    assert found >= min(hosts, FEWEST)
    if bastion:
        assert found <= max(FEWEST, MOST_BY_BASTION)


@given(st.integers(1, 5000), st.integers(1, 64), st.integers(0, 64 * GIB))
def test_a_larger_box_never_gets_fewer(hosts: int, cores: int, memory: int) -> None:
    assert forks(hosts, cores, memory) <= forks(hosts, cores + 1, memory)
    assert forks(hosts, cores, memory) <= forks(hosts, cores, memory + GIB)


def test_two_cores_and_four_gibibytes() -> None:
    assert forks(1000, 2, 4 * GIB) == 32
    assert forks(3, 2, 4 * GIB) == 3
    assert forks(1000, 64, 256 * GIB) == MOST
    assert forks(1000, 64, GIB // 4) == FEWEST


def test_free_memory_is_the_kernels_word(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 8 kB\nMemAvailable:    2048 kB\n")
    assert free_memory(tmp_path / "meminfo") == 2048 << 10
    assert free_memory(tmp_path / "none") == FEWEST * width.FORK_BYTES * width.MEMORY_SHARE


def test_an_address_without_settings_has_no_bastion() -> None:
    assert not by_bastion("")
    assert not by_bastion("192.0.2.1")
