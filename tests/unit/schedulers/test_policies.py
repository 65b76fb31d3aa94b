"""What the API server refuses beside each scheduler: where it counts, and whom it lets pass."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import pytest

from pai_install.schedulers.compile import objects_of
from pai_install.scheduling.admission import allowed, asks, literal, vendors
from pai_install.scheduling.model import BACKENDS, Backend
from tests.virtual_clusters import CASES, two_teams, with_backend

ALL = list(product(CASES, BACKENDS))


def policies(case: str, backend: Backend) -> dict[str, dict[str, Any]]:
    """Name -> policy."""
    objects = objects_of(with_backend(CASES[case](), backend))
    return {it["metadata"]["name"]: it["spec"] for it in objects if it["kind"] == "ValidatingAdmissionPolicy"}


def bindings(case: str, backend: Backend) -> dict[str, dict[str, Any]]:
    """Policy -> binding."""
    objects = objects_of(with_backend(CASES[case](), backend))
    found = [it["spec"] for it in objects if it["kind"] == "ValidatingAdmissionPolicyBinding"]
    return {it["policyName"]: it for it in found}


@pytest.mark.parametrize(("case", "backend"), ALL)
def test_every_policy_counts_and_refuses(case: str, backend: Backend) -> None:
    assert policies(case, backend).keys() == bindings(case, backend).keys()
    assert all(it["validationActions"] == ["Deny"] for it in bindings(case, backend).values())


@pytest.mark.parametrize(("case", "backend"), ALL)
def test_only_namespaces_of_groups_are_touched_but_by_what_would_crash_hived(case: str, backend: Backend) -> None:
    namespaces = {it for cluster in CASES[case]().clusters for it in cluster.namespaces}
    for name, it in bindings(case, backend).items():
        if name == "pai-hived-pods":
            assert "matchResources" not in it
        else:
            (within,) = it["matchResources"]["namespaceSelector"]["matchExpressions"]
            assert set(within["values"]) == namespaces


@pytest.mark.parametrize("backend", BACKENDS)
def test_administrators_are_exempt_and_no_one_else(backend: Backend) -> None:
    for it in policies("two_teams", backend).values():
        (condition,) = it["matchConditions"]
        assert "'system:masters', 'kubeadm:cluster-admins'" in condition["expression"]
        assert it["failurePolicy"] == "Fail"


@pytest.mark.parametrize(("case", "backend"), ALL)
def test_variables_are_declared_before_they_are_used(case: str, backend: Backend) -> None:
    for it in policies(case, backend).values():
        known: set[str] = set()
        for variable in it["variables"]:
            assert used(variable["expression"]) <= known
            known.add(variable["name"])
        for rule in it["validations"]:
            assert used(rule["expression"]) | used(rule["messageExpression"]) <= known


def used(expression: str) -> set[str]:
    """Names of variables in an expression."""
    return set(re.findall(r"\bvariables\.(\w+)", expression))


def test_jobs_are_asked_again_when_they_change_and_pods_only_once() -> None:
    found = {
        name: it["matchConstraints"]["resourceRules"][0]["operations"]
        for name, it in policies("two_teams", "kueue").items()
    }
    assert found == {
        "pai-queued-jobs": ["CREATE", "UPDATE"],
        "pai-queued-jobsets": ["CREATE", "UPDATE"],
        "pai-queued-tfjobs": ["CREATE", "UPDATE"],
        "pai-queued-pytorchjobs": ["CREATE", "UPDATE"],
        "pai-queued-xgboostjobs": ["CREATE", "UPDATE"],
        "pai-queued-paddlejobs": ["CREATE", "UPDATE"],
        "pai-queued-jaxjobs": ["CREATE", "UPDATE"],
        "pai-queued-pods": ["CREATE"],
        "pai-workload-priorities": ["CREATE", "UPDATE"],
    }


def test_priorities_up_to_the_highest_are_allowed() -> None:
    scheduling = two_teams()
    assert allowed(scheduling.cluster("research")) == ("crit", "prod", "test", "oppo")
    assert allowed(scheduling.cluster("product")) == ("prod", "test", "oppo")


def test_slices_of_a_device_are_devices_too() -> None:
    assert vendors(("nvidia.com/gpu", "huawei.com/Ascend910", "nvidia.com/mig-1g.5gb")) == (
        "nvidia.com/",
        "huawei.com/",
    )


def test_containers_that_run_before_the_others_ask_too() -> None:
    found = asks("object.spec", ("nvidia.com/",))
    assert "object.spec.containers.exists" in found
    assert "object.spec.initContainers.exists" in found


def test_a_site_without_devices_asks_for_none() -> None:
    assert "[].exists" in asks("object.spec", ())


def test_texts_cannot_end_an_expression() -> None:
    assert literal("a\"b\\c'd") == '"a\\"b\\\\c\'d"'
