"""YAML of others: limited, and never a crash."""

from __future__ import annotations

import pytest
import yaml

from pai_install.system.yaml import load_untrusted_yaml


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "- " * 10_000 + "a", "a: &a [*a]", "a: &a {b: 1}\nc: {<<: *a}", "{", "\0"]
)
def test_hostile_texts_are_refused(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        load_untrusted_yaml(text)


def test_plain_texts_are_read() -> None:
    assert load_untrusted_yaml("priority: -1\nleafCellNumber: 2\n") == {"priority": -1, "leafCellNumber": 2}
    assert load_untrusted_yaml("") is None
