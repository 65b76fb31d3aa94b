"""Who is refused as a node, and who no longer."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pai_install.operations.removed_machines import NAME, NAMESPACE, QUERY, fence, removed_machines, with_removed
from tests.ansible_path import PLAYBOOKS
from tests.unit.cluster.fake import FakeCluster

MACHINES = st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["", "1", "2"]))


def test_what_is_written_is_what_is_read() -> None:
    cluster = FakeCluster.of(*fence({"a": "1", "b": "2"}))
    assert removed_machines(cluster.list(QUERY)[0]) == {"a": "1", "b": "2"}
    assert removed_machines(FakeCluster().list(QUERY)[0]) == {}


def test_policy_binding_and_list_belong_together() -> None:
    objects: dict[str, Any] = {one["kind"]: one for one in fence({})}
    binding = objects["ValidatingAdmissionPolicyBinding"]["spec"]
    assert binding["policyName"] == objects["ValidatingAdmissionPolicy"]["metadata"]["name"] == NAME
    assert binding["paramRef"]["name"] == objects["ConfigMap"]["metadata"]["name"]
    assert binding["paramRef"]["parameterNotFoundAction"] == "Allow"


@given(known=MACHINES, removed=MACHINES)
def test_a_machine_without_a_known_id_is_told_by_nothing(known: dict[str, str], removed: dict[str, str]) -> None:
    found = with_removed(known, removed)
    assert {name: value for name, value in found.items() if removed.get(name)} == {
        name: value for name, value in removed.items() if value
    }
    assert {name: value for name, value in found.items() if not removed.get(name)} == {
        name: value for name, value in known.items() if not removed.get(name)
    }


def test_the_list_is_that_from_which_a_signed_login_takes_a_machine() -> None:
    module = (PLAYBOOKS / "library" / "pai_node_certificate.py").read_text()
    assert f'REMOVED, NAMESPACE = "{NAME}", "{NAMESPACE}"' in module
