"""What the lab knows of distributions: data that must hold together."""

from __future__ import annotations

import re

import pytest

from pai_install.lab.distribution import DISTRIBUTIONS, SUITE, SUITES, LabDistribution, distribution_of
from pai_install.lab.image import PREFETCHED
from pai_install.preflight.needs import SUPPORTED_SYSTEMS


def test_each_suite_belongs_to_one_distribution() -> None:
    assert len(set(SUITES)) == len(SUITES)
    assert [distribution_of(suite).name for suite in ("trixie", "noble")] == ["Debian", "Ubuntu"]
    assert distribution_of(SUITE).name == "Debian"
    with pytest.raises(KeyError):
        distribution_of("plucky")


@pytest.mark.parametrize("mine", DISTRIBUTIONS, ids=lambda mine: mine.word)
def test_a_distribution_holds_together(mine: LabDistribution) -> None:
    assert len(mine.suites) == len(SUPPORTED_SYSTEMS[mine.word])  # as many as preflight lets in
    assert mine.suites
    assert "" in next(iter(mine.archives.values()))  # the first archive has the release itself
    assert mine.components.split()[0] == "main"
    assert set(mine.lacking) <= set(mine.suites)
    assert all(names <= set(PREFETCHED) for names in mine.lacking.values())
    assert bool(mine.keyring_package) == bool(mine.fingerprints) == bool(mine.keyring_digest)
    assert all(re.fullmatch("[0-9A-F]{40}", fingerprint) for fingerprint in mine.fingerprints)


@pytest.mark.parametrize("mine", DISTRIBUTIONS, ids=lambda mine: mine.word)
def test_archives_are_recognised_by_the_end_of_their_address(mine: LabDistribution) -> None:
    assert all(mine.word in uri.rsplit("/", 1)[-1] for uri in mine.archives)
