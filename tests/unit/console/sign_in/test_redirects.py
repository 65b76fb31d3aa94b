"""Open redirects: a token goes to nobody else."""

from __future__ import annotations

import pytest

from pai_install.console.sign_in.redirects import own_path, return_address

NAMES = ("pai.example.org", "10.0.0.1", "fd00::1")


@pytest.mark.parametrize(
    "word",
    [
        "//evil.example.org",
        "/\\evil.example.org",
        "\\\\evil.example.org",
        "https://evil.example.org/",
        "/\t/evil.example.org",
        "/\n/evil.example.org",
        "javascript:alert(1)",
        "evil",
        "",
        "/" + "a" * 3000,
        "/\u2028",
    ],
)
def test_no_path_of_the_console(word: str) -> None:
    assert own_path(word) == "/"
    assert return_address(word, NAMES, 443) is None


@pytest.mark.parametrize("word", ["/", "/jobs?state=RUNNING", "/jobs/alice~a#log"])
def test_a_path_of_the_console(word: str) -> None:
    assert own_path(word) == word


@pytest.mark.parametrize(
    "word",
    [
        "https://pai.example.org.evil.example.org/",
        "https://pai.example.org@evil.example.org/",
        "https://evil.example.org#pai.example.org",
        "https://evil.example.org/?https://pai.example.org/",
        "http://pai.example.org/",
        "https://pai.example.org:8443/",
        "ftp://pai.example.org/",
        "http://localhost/",
        "http://localhost.evil.example.org:8080/",
        "http://localhost:8080@evil.example.org/",
        "http://localhost:80a/",
        "http://localhost:99999/",
        "https://localhost:8080/",
        "http://127.0.0.1.evil.example.org:80/",
        "http://0.0.0.0:8080/",
        "vscode://evil",
        "data:text/html,x",
        "https://[::1",
    ],
)
def test_a_foreign_address(word: str) -> None:
    assert return_address(word, NAMES, 443) is None


@pytest.mark.parametrize("word", ["http://localhost:40123/callback", "http://127.0.0.1:80/", "http://[::1]:1024/x?y=z"])
def test_a_program_on_the_computer_of_the_person(word: str) -> None:
    found = return_address(word, NAMES, 443)
    assert found is not None
    assert found.program


@pytest.mark.parametrize("word", ["https://pai.example.org/index.html", "https://10.0.0.1:443/", "https://[fd00::1]/"])
def test_a_page_of_the_console(word: str) -> None:
    found = return_address(word, NAMES, 443)
    assert found is not None
    assert not found.program


def test_values_are_added_to_the_query() -> None:
    found = return_address("http://localhost:1234/callback?a=b", NAMES, 443)
    assert found is not None
    assert found.with_query(user="al&ice", token="x.y.z") == (
        "http://localhost:1234/callback?a=b&user=al%26ice&token=x.y.z"
    )
