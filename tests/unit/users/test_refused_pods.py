"""The policy for pods that their machine refuses is there where the API server knows it."""

from __future__ import annotations

import pytest

from pai_install.users.refused_pods import refused_pods


@pytest.mark.parametrize(("version", "count"), [("1.35.8", 0), ("1.36", 2), ("1.36.3", 2), ("2.0", 2)])
def test_versions_with_policies_that_change_objects_have_it(version: str, count: int) -> None:
    assert len(list(refused_pods(version, ["vision"]))) == count


def test_it_counts_in_the_namespaces_of_groups() -> None:
    _policy, binding = refused_pods("1.36.3", ["vision", "nlp"])
    (within,) = binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
    assert within["values"] == ["vision", "nlp"]
