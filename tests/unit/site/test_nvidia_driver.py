from __future__ import annotations

import pytest
from pydantic import ValidationError

from pai_install.site.nvidia_driver import DriverSpec
from pai_install.site.settings import Settings


def driver(value: object) -> object:
    return Settings(user="admin", nvidia_driver=value).nvidia_driver


def test_the_driver_is_the_admins_unless_the_site_says_otherwise() -> None:
    assert Settings(user="admin").nvidia_driver == "existing"
    assert driver("existing") == "existing"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"branch": 580}, DriverSpec(branch=580)),
        ({"branch": "595", "modules": "proprietary"}, DriverSpec(branch=595, modules="proprietary")),
        ({"branch": 580, "packages": "nvidia"}, DriverSpec(branch=580, packages="nvidia")),
    ],
)
def test_a_branch(value: object, expected: DriverSpec) -> None:
    assert driver(value) == expected


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("580", "is not a driver"),
        ("latest", "is not a driver"),
        ({}, "has no branch"),
        ({"modules": "open"}, "has no branch"),
        ({"branch": 580126}, "is not a branch"),
        ({"branch": 304}, "is not a branch"),
        ({"branch": "580.126.20"}, "580.126.20"),
        ({"branch": 580, "modules": "closed"}, "is not one of open, proprietary"),
        ({"branch": 580, "packages": "runfile"}, "is not one of distribution, nvidia"),
        ({"branch": 580, "version": "580.1"}, "version is not known here"),
    ],
)
def test_what_is_no_driver(value: object, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        driver(value)
