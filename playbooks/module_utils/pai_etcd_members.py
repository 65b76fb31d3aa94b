"""A client of etcd for control-plane nodes: HTTPS with the certificates of kubeadm, without other programs.

A member is a dict: id, name, peers (URLs), clients (URLs), learner.
"""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from ansible.module_utils.pai_json import parse

PKI = "/etc/kubernetes/pki/etcd"
CERTIFICATE = PKI + "/healthcheck-client.crt"
HERE = "https://127.0.0.1:2379"
LARGEST_ANSWER = 1 << 20
Member = dict[str, Any]


class EtcdError(Exception):
    """etcd does not answer, or refuses."""


def members(url: str = HERE) -> list[Member]:
    """All members, learners too. Raises EtcdError."""
    found = _request(url + "/v3/cluster/member/list", {})
    return [parse_member(entry) for entry in found.get("members", [])]


def remove(member: Member, url: str = HERE) -> None:
    """Takes a member out of the cluster. Raises EtcdError."""
    _request(url + "/v3/cluster/member/remove", {"ID": member["id"]})


def parse_member(entry: dict[str, Any]) -> Member:
    """Parses a member from etcd's JSON gateway. A member that never started has no name."""
    return {
        # The gateway writes numbers of 64 bits as texts, since JSON readers would round them.
        "id": str(entry["ID"]),
        "name": entry.get("name", ""),
        "peers": entry.get("peerURLs", []),
        "clients": entry.get("clientURLs", []),
        "learner": bool(entry.get("isLearner")),
    }


def sickness(member: Member) -> str:
    """Returns why a member does not count for the quorum, or ""."""
    if member["learner"]:
        return "is still catching up with the others"
    # An interrupted join leaves such a member. It counts for the quorum, but never votes.
    if not member["clients"]:
        return "was added and never started"
    try:
        answer = _request(member["clients"][0] + "/health")
    except EtcdError as error:
        return str(error)
    return "" if str(answer.get("health")) == "true" else str(answer.get("reason") or "is not healthy")


def addresses(member: Member) -> set[str]:
    """Host parts of a member's peer URLs."""
    return {urlsplit(url).hostname or "" for url in member["peers"]}


def label(member: Member) -> str:
    """How to call a member: its name, or where it should have started."""
    return member["name"] or ", ".join(sorted(addresses(member)))


def at(found: list[Member], places: list[str]) -> list[Member]:
    """Members with one of the addresses."""
    return [member for member in found if addresses(member) & set(places)]


def join_problem(found: list[Member], sick: dict[str, str]) -> str:
    """Returns why no member may be added, or "". sick: id of an unhealthy member -> problem."""
    return _named(found, sick) if any(member["id"] in sick for member in found) else ""


def leave_problem(found: list[Member], sick: dict[str, str], places: list[str], own: str) -> str:
    """Returns why the members at `places` may not leave one after the other, or "".

    own: address of the machine that removes them. Unhealthy members leave first, whatever the order of places. Every
    step needs the quorum of all present members, and the remaining members must keep their quorum.
    """
    voters = [member for member in found if not member["learner"]]
    removed = at(voters, places)
    staying = [member for member in voters if member not in removed]
    if own in places:
        return "the control plane that is asked cannot leave by its own word"
    if removed and not staying:
        return "no member would be left"
    # Removing a healthy member while another is down can lose the quorum. Removing a dead one cannot.
    lost = [member for member in staying if member["id"] in sick]
    if lost and any(member["id"] not in sick for member in removed):
        return f"first restore or remove what is not well: {_named(lost, sick)}"
    # etcd accepts a removal only with a majority of all present voters.
    well = len(voters) - sum(member["id"] in sick for member in voters)
    if removed and well <= len(voters) // 2:
        return f"etcd has no quorum, so it takes no member out: {_named(voters, sick)}"
    return ""


def in_order(found: list[Member], sick: dict[str, str], places: list[str]) -> list[Member]:
    """Returns the members at `places` in the order of their removal: unhealthy members first."""
    # A dead member counts for the size of the quorum until it is removed.
    return sorted(at(found, places), key=lambda member: (member["id"] not in sick, label(member)))


def stop_problem(found: list[Member], sick: dict[str, str], own: str) -> str:
    """Returns why the member at address `own` may not stop briefly, or "".

    It may stop if the others keep the quorum, and if it is already down or all others are healthy.
    """
    voters = [member for member in found if not member["learner"]]
    others = [member for member in voters if own not in addresses(member)]
    well = [member for member in others if member["id"] not in sick]
    down_already = any(member["id"] in sick for member in at(voters, [own]))
    if down_already or len(well) == len(others) or len(well) > len(voters) // 2:
        return ""
    return _named(others, sick)


def _named(found: list[Member], sick: dict[str, str]) -> str:
    return "; ".join(f"etcd of {label(member)}: {sick[member['id']]}" for member in found if member["id"] in sick)


def _message(body: bytes) -> str:
    """Returns the message in an error response of etcd's gateway."""
    try:
        return str(parse(body)["message"])
    except (ValueError, KeyError, TypeError):
        return body.decode(errors="replace").strip()


def _request(url: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    try:
        context = ssl.create_default_context(cafile=PKI + "/ca.crt")
        context.load_cert_chain(CERTIFICATE, PKI + "/healthcheck-client.key")
        # etcd is never behind the proxy of the environment, also if no_proxy lacks an address.
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        data = None if body is None else json.dumps(body).encode()
        with opener.open(url, data=data, timeout=5) as answer:
            found = parse(answer.read(LARGEST_ANSWER))
    except urllib.error.HTTPError as error:
        raise EtcdError(f"{urlsplit(url).netloc} refuses: {error.code} {_message(error.read(2000))}") from error
    except (OSError, ValueError) as error:
        raise EtcdError(f"{urlsplit(url).netloc} does not answer: {error}") from error
    return found if isinstance(found, dict) else {}
