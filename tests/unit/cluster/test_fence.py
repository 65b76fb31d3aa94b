"""Who is refused as a node, and who no longer."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pai_install.cluster.fence import NAME, QUERY, fence, removed_machines, with_removed, without_removed
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


@given(known=MACHINES, back=MACHINES)
def test_a_machine_that_is_back_is_refused_no_longer_and_another_one_of_its_name_still_is(
    known: dict[str, str], back: dict[str, str]
) -> None:
    left = without_removed(known, back)
    for name, value in back.items():
        assert (name in left) == (name in known and value not in ("", known[name]))
    assert {name: value for name, value in known.items() if name not in back}.items() <= left.items()
