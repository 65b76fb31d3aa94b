"""Signing keys of all replicas."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta

import pytest

from pai_install.console.sign_in.keys import SigningKeys
from pai_install.kube.model import Ref
from tests.unit.cluster.fake import FakeCluster

_REF = Ref("secret", "signing", "pai-console")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def kept(cluster: FakeCluster, *ages_days: float) -> None:
    """Writes keys of these ages, the newest first."""
    now = datetime.now(UTC)
    keys = [
        {"id": f"k{number}", "key": f"{number:064x}", "since": (now - timedelta(days=age)).isoformat()}
        for number, age in enumerate(ages_days)
    ]
    data = {"keys": base64.b64encode(json.dumps({"keys": keys}).encode()).decode()}
    cluster.objects[_REF] = {
        "kind": "Secret",
        "metadata": {"name": "signing", "namespace": "pai-console"},
        "data": data,
    }


def test_the_first_replica_makes_a_key_and_the_others_read_it() -> None:
    cluster = FakeCluster()
    one, other = SigningKeys(lambda: cluster), SigningKeys(lambda: cluster)
    (key,) = one.all
    assert len(key.key) == 32
    assert list(other.all) == [key]
    assert one.signing == key
    assert key.key.hex() not in repr(key)


def test_a_year_later_the_next_key_comes_and_the_first_still_counts() -> None:
    cluster = FakeCluster()
    kept(cluster, 371)
    keys = SigningKeys(lambda: cluster)
    assert [key.id == "k0" for key in keys.all] == [False, True]
    # the other replicas have not read the new one yet
    assert keys.signing.id == "k0"


def test_a_new_key_signs_after_five_minutes_and_there_are_two_at_most() -> None:
    cluster = FakeCluster()
    kept(cluster, 1, 371)
    assert SigningKeys(lambda: cluster).signing.id == "k0"
    kept(cluster, 371, 742)
    assert len(SigningKeys(lambda: cluster).all) == 2
    assert [key.id for key in SigningKeys(lambda: cluster).all][1:] == ["k0"]


def test_deleting_the_secret_ends_all_tokens_within_a_minute() -> None:
    cluster, clock = FakeCluster(), Clock()
    keys = SigningKeys(lambda: cluster, clock)
    (before,) = keys.all
    del cluster.objects[_REF]
    assert list(keys.all) == [before]
    clock.now = 61
    assert before not in keys.all


@pytest.mark.parametrize("content", ["", "%%%", "bnVsbA==", "eyJrZXlzIjogW3siaWQiOiAieCIsICJrZXkiOiAiYWIifV19"])
def test_a_spoilt_secret_is_replaced(content: str) -> None:
    cluster = FakeCluster()
    cluster.objects[_REF] = {
        "kind": "Secret",
        "metadata": {"name": "signing", "namespace": "pai-console"},
        "data": {"keys": content},
    }
    (key,) = SigningKeys(lambda: cluster).all
    assert len(key.key) == 32
