"""A version that a machine has stays, whatever the catalogue prefers; and where no one says, nothing is believed."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from pai_install.components.catalogue import load_catalogue
from pai_install.parts.context import Context
from pai_install.plan.inventory import build_inventory, combined
from pai_install.plan.model import Inventory
from pai_install.plan.observed import Membership, Observed
from pai_install.plan.versions import (
    desired_version,
    differences,
    fits,
    installed,
    kept,
    minor,
    newest,
    numbers,
    promised,
)
from pai_install.site import Site
from tests.unit.plan.conftest import CONFIG

VERSIONS = st.tuples(st.integers(0, 3), st.integers(0, 60), st.integers(0, 30)).map(lambda it: ".".join(map(str, it)))


def machine(name: str, programs: dict[str, str], images: dict[str, str] | None = None, **settings: str) -> Observed:
    """A machine of the cluster; settings: those of a control plane."""
    membership = Membership(control_plane=bool(settings), node=True, joined=True, settings=settings)
    return Observed(hostname=name, kubernetes=membership, programs=programs, images=images or {})


def test_programs_images_and_static_pods_say_versions() -> None:
    seen = machine(
        "master",
        {"containerd": "2.3.6", "kubelet": "1.35.4", "etcdctl": "3.6.8", "kubeadm": "1.36.3"},
        {"flannel": "v0.28.4", "etcd": "3.6.8-0", "pause": "3.10.1", "coredns": "v1.13.1"},
        version="1.35.4",
        etcd="3.6.6-0",
    )
    found = installed(seen)
    assert found["containerd"] == "2.3.6"
    assert found["kubernetes"] == "1.35.4", "a kubeadm that was brought for an upgrade upgrades nothing"
    assert found["etcd"] == "3.6.6", "its image is there before its pod changes"
    assert (found["flannel"], found["pause"], found["coredns"]) == ("0.28.4", "3.10.1", "1.13.1")
    assert "runc" not in found


def test_an_image_whose_tag_says_no_version_is_of_none() -> None:
    """On every machine of a site with the training-operator."""
    for name, component in load_catalogue().components.items():
        for repository, spec in component.images.items():
            tag = spec.tag.format(version="1.2.3")
            found = installed(Observed(hostname="m", images={repository: tag}))
            assert found.get(name, "") in {"1.2.3", ""}, name
    assert installed(Observed(hostname="m", images={"training-operator": "v1-93c5489"})) == {}


def test_control_plane_that_was_cut_off_after_its_pods_is_finished_not_taken_back() -> None:
    assert installed(machine("master", {"kubelet": "1.35.4"}, version="1.36.3"))["kubernetes"] == "1.36.3"


def test_machines_keep_their_own_and_new_ones_get_the_control_planes(site: Site) -> None:
    seen = {
        "master": machine("master", {"containerd": "2.3.7", "kubelet": "1.36.3"}, version="1.36.3"),
        "worker1": machine(
            "worker1", {"containerd": "2.3.6", "kubelet": "1.35.4", "nvidia-container-toolkit": "1.19.0"}
        ),
        "worker2": Observed(hostname="worker2"),
    }
    found = kept(site, seen)
    assert found["worker1"]["kubernetes"] == "1.35.4"
    assert found["worker1"]["containerd"] == "2.3.6"
    assert found["worker2"] == {**found["master"]}
    assert found["master"]["nvidia-container-toolkit"] == "1.19.0", "what only others have is one answer for all"


def test_without_a_cluster_the_catalogue_decides(site: Site) -> None:
    assert kept(site, {"master": Observed(hostname="master", programs={"containerd": "2.0.0"})}) == {}


def test_what_config_yaml_says_is_a_wish_only_where_it_says_it(make_site: Callable[..., Site]) -> None:
    assert desired_version(make_site()) == ""
    assert desired_version(make_site(config=CONFIG + 'kubernetes_version: "1.35"\n')) == "1.35"


def test_a_minor_version_is_asked_for_by_its_two_numbers() -> None:
    assert fits("1.36.3", "1.36")
    assert fits("1.36.3", "1.36.3")
    assert fits("1.36.3", "")
    assert not fits("1.36.30", "1.36.3")
    assert not fits("1.35.4", "1.36")


@given(VERSIONS, VERSIONS)
def test_versions_are_ordered_by_number(one: str, other: str) -> None:
    assert numbers(newest([one, other])) == max(numbers(one), numbers(other))
    assert minor(one) == numbers(one)[:2]


@given(st.dictionaries(st.sampled_from("abcd"), VERSIONS), st.dictionaries(st.sampled_from("abcd"), VERSIONS))
def test_differences_name_what_changes_and_nothing_else(had: dict[str, str], wanted: dict[str, str]) -> None:
    changed = differences(had, wanted)
    assert {**had, **{name: new for name, (_, new) in changed.items()}} == {
        **had, **{name: wanted[name] for name in had.keys() & wanted.keys()}
    }  # fmt: skip


def test_roles_variables_promise_versions(inventory: Inventory) -> None:
    found = promised(inventory.variables_of("master"))
    assert found["kubernetes"] == "1.0"
    assert found["flannel"] == "0.28.4"
    assert found["etcd"] == "3.6.8"


def test_combined_inventory_gives_some_machines_other_variables(
    site: Site, context: Context, inventory: Inventory
) -> None:
    other = build_inventory(context, {"base": "2"})
    both = combined(inventory, {"worker1": other})
    assert both.settings_of("worker1") == other.settings_of("worker1")
    assert both.settings_of("worker2") == inventory.settings_of("worker2")
    assert both.variables_of("worker1") == {
        **other.variables_of("worker1"),
        "pai_settings": other.settings_of("worker1"),
    }
    assert both.groups == inventory.groups
