"""From what is published to the rules of a node."""

from __future__ import annotations

from typing import Any

from pai_install.agents.common.api import Access, Client
from pai_install.agents.group_network.guard import Guard, NftError
from pai_install.agents.group_network.ruleset import Rules

from .objects import CIDR, Object


class Nft:
    """nft that keeps what it was given. away: another program removed the table."""

    def __init__(self) -> None:
        self.loaded: list[str] = []
        self.away = False
        self.broken = False

    def __call__(self, *words: str, rules: str = "") -> None:
        if words[0] == "-f":
            if self.broken:
                raise NftError("no room")
            self.loaded.append(rules)
            self.away = False
        elif self.away:
            raise NftError("no such table")


def published(name: str, words: Any) -> Object:
    return {"metadata": {"name": name}, "data": {"addresses": words}}


def guarding() -> tuple[Guard, Nft, list[str]]:
    nft, said = Nft(), list[str]()
    client = Client(lambda: Access("http://127.0.0.1:1"))
    return Guard(client, Rules(CIDR, {"tcp": (10250,)}), said.append, nft), nft, said


ALL = (published("others", "10.200.1.7"), published("machines", "172.30.0.1"), published("group.a", "10.200.1.5"))


def step(guard: Guard, *items: Object) -> None:
    guard.events.put(lambda: guard.take_list(items))
    guard.step(0)


def test_there_are_no_rules_before_everything_is_published() -> None:
    guard, nft, _ = guarding()
    step(guard, *ALL[2:])
    assert nft.loaded == []
    step(guard, *ALL)
    assert len(nft.loaded) == 1
    assert "10.200.1.5 : goto group0" in nft.loaded[0]


def test_rules_are_loaded_for_a_change_and_after_a_loss() -> None:
    guard, nft, _ = guarding()
    step(guard, *ALL)
    guard.step(0)
    assert len(nft.loaded) == 1
    nft.away = True
    guard.step(0)
    assert len(nft.loaded) == 2
    guard.events.put(lambda: guard.take(published("group.a", "10.200.1.6"), deleted=False))
    guard.step(0)
    assert "10.200.1.6" in nft.loaded[2]
    guard.events.put(lambda: guard.take(published("group.a", ""), deleted=True))
    guard.step(0)
    assert "goto group" not in nft.loaded[3]


def test_rules_that_were_refused_are_tried_again() -> None:
    guard, nft, said = guarding()
    nft.broken = True
    step(guard, *ALL)
    assert len(said) == 1
    nft.broken = False
    guard.step(0)
    assert len(nft.loaded) == 1


def test_strange_maps_change_nothing() -> None:
    guard, nft, said = guarding()
    step(guard, *ALL)
    strange: tuple[Object, ...] = (
        published("kube-root-ca.crt", "x"),
        published("group.a", "10.200.1.5 ; flush ruleset"),
        {"data": []},
    )
    step(guard, *ALL, *strange)
    assert nft.loaded == nft.loaded[:1]
    assert said == []


def test_the_ports_of_web_pages_are_closed() -> None:
    guard, nft, _ = guarding()
    step(guard, *ALL, published("web", "10.200.1.5:8888 ; 10.200.1.6"), published("control-planes", "172.30.0.9"))
    assert "elements = { 10.200.1.5 . 8888 }" in nft.loaded[0]
    assert "set control_planes {\ntypeof ip saddr\nelements = { 172.30.0.9 }" in nft.loaded[0]
