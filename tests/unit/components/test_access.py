from __future__ import annotations

import email.message
import email.utils
import time
import urllib.error
from collections.abc import Iterator
from pathlib import Path

import pytest

from pai_install.components.access import Access, Mirror, answered, in_a_hurry, refused, requested_pause_s
from tests.internet.authority import Authority


def error(status: int, **headers: str) -> urllib.error.HTTPError:
    message = email.message.Message()
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    return urllib.error.HTTPError("https://registry-1.docker.io/v2/x", status, "said so", message, None)


@pytest.mark.parametrize(
    ("status", "asked", "seconds"),
    [(429, "7", 7.0), (503, "0", 0.0), (429, "", None), (404, "7", None), (429, "soon", None), (429, "-1", None)],
)
def test_a_server_says_when_to_come_back(status: int, asked: str, seconds: float | None) -> None:
    assert requested_pause_s(error(status, Retry_After=asked)) == seconds


def test_a_server_may_say_it_by_the_clock() -> None:
    pause = requested_pause_s(error(429, Retry_After=email.utils.formatdate(time.time() + 100, usegmt=True)))
    assert pause is not None
    assert 90 < pause <= 101
    assert requested_pause_s(error(429, Retry_After=email.utils.formatdate(0, usegmt=True))) == 0.0


def test_a_limit_of_another_server_is_not_docker_hubs() -> None:
    problem = refused("https://ghcr.io/v2/x", error(429))
    assert problem.message.endswith("ghcr.io limits how much one address may fetch")


def test_a_mirrors_login_is_a_header_and_shown_nowhere() -> None:
    mirror = Mirror("https://m.example", "robot", "word")
    assert mirror.login() == {"Authorization": "Basic cm9ib3Q6d29yZA=="}
    assert mirror.access().headers == mirror.login()
    assert "word" not in repr(mirror)
    assert "cm9i" not in repr(mirror.access())
    assert Mirror("https://m.example").login() == {}


def test_an_authority_of_its_own_stands_beside_the_systems(tmp_path: Path) -> None:
    assert Mirror("https://m.example").access().trust is None
    trust = Mirror("https://m.example", authorities=Authority("x", tmp_path).pem).access().trust
    assert trust is not None
    assert trust.cert_store_stats()["x509_ca"] >= 1


def test_a_login_is_made_anew_once() -> None:
    renewed: list[int] = []
    answers: Iterator[urllib.error.HTTPError | str] = iter([error(401), "fine"])

    def send() -> str:
        answer = next(answers)
        if isinstance(answer, str):
            return answer
        raise answer

    assert answered(Access(renew=lambda refusal: renewed.append(refusal.code)), send) == "fine"
    assert renewed == [401]


@pytest.mark.parametrize(("access", "status"), [(Access(), 401), (Access(renew=lambda _error: None), 500)])
def test_what_no_login_helps(access: Access, status: int) -> None:
    def send() -> None:
        raise error(status)

    with pytest.raises(urllib.error.HTTPError):
        answered(access, send)


def test_a_question_in_a_hurry_waits_for_nobody() -> None:
    quick = in_a_hurry(Access({"Authorization": "x"}))
    assert (quick.waits_s, quick.headers) == (0.0, {"Authorization": "x"})
    assert quick.timeout_s < Access().timeout_s
