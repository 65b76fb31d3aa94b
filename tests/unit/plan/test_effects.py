"""What a run does to what already runs on a machine is said in the plan."""

from __future__ import annotations

from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.parts.container_runtime import ContainerRuntimeVariables
from pai_install.plan.effects import effects, impact
from pai_install.plan.model import HostStep, Inventory
from pai_install.plan.observed import DockerFacts, NvidiaFacts, Observed, RoleRecord
from pai_install.plan.planner import make_plan
from pai_install.site import Site
from pai_install.site.field_metadata import ChangeClass, changes
from pai_install.site.settings import Settings

from .conftest import converged

RUNTIME = ("container_runtime", "kubernetes_node", "api_proxy")
BUSY = Observed(
    hostname="worker1",
    services=("containerd.service", "docker.service", "chrony.service", "ntp.service"),
    docker=DockerFacts(containers=2),
)


def record(**words: Any) -> Observed:
    """A machine on which container_runtime ran with settings {"a": "1"}."""
    return Observed(hostname="one", roles={"container_runtime": RoleRecord(settings={"a": "1"}, **words)})


def test_first_installation_names_what_runs_there(snapshot: SnapshotAssertion) -> None:
    assert effects(RUNTIME, {}, BUSY) == ("restarts containerd.service", "restarts docker.service")
    assert effects(("time_sync",), {}, BUSY) == snapshot


def test_first_installation_on_an_empty_machine_has_no_effect() -> None:
    assert effects((*RUNTIME, "time_sync"), {}, Observed(hostname="new")) == ()


def test_drift_names_the_readers_of_the_file() -> None:
    seen = record(drift=("x was changed by hand",), readers=("a.service", "b.service"), restarts=("b.service",))
    assert effects(("container_runtime",), {"container_runtime": {"a": "1"}}, seen) == ("restarts b.service",)


def test_another_setting_may_restart_every_reader() -> None:
    seen = record(readers=("a.service", "b.service"), restarts=("b.service",))
    wanted = {"container_runtime": {"a": "2"}}
    assert effects(("container_runtime",), wanted, seen) == ("restarts b.service", "may restart a.service")


READERS = ("containerd.service", "docker.service")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (("log_max_size",), ("restarts docker.service",)),
        (("store_host",), ()),
        (("store", "store_ca"), ()),
        (("sandbox_image",), ("restarts containerd.service",)),
        (("proxy",), ("restarts containerd.service", "restarts docker.service")),
        (("log_max_size", "artifacts"), ("restarts docker.service", "may restart containerd.service")),
    ],
)
def test_changed_setting_names_the_units_that_restart_with_it(changed: tuple[str, ...], words: tuple[str, ...]) -> None:
    wanted = {"container_runtime": {f"container_runtime_{name}": "2" for name in changed}}
    assert effects(("container_runtime",), wanted, record(readers=READERS)) == words


def test_settings_say_of_docker_what_the_plan_says(site: Site) -> None:
    """The classes in site/settings.py and the declarations of the role's variables do not contradict each other."""
    declared = {name: change.units for name, change in changes(Settings).items() if change.kind is ChangeClass.RESTARTS}
    runtime = ContainerRuntimeVariables.restarting()
    for setting in ("docker_log_max_size", "docker_log_max_file", "docker_live_restore", "docker_data_root"):
        variable = "container_runtime_" + (setting if setting.endswith("root") else setting.removeprefix("docker_"))
        assert runtime[variable] == declared[setting], setting


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({}, "2 running containers of Docker keep running: live-restore is turned on first"),
        (
            {"container_runtime_live_restore": False},
            "2 running containers of Docker will stop: the site says docker_live_restore: false",
        ),
    ],
)
def test_running_containers_are_remarked_on(variables: dict[str, Any], words: str) -> None:
    assert impact((), ("restarts docker.service",), variables, BUSY) == (words,)


def test_one_container_is_spoken_of_as_one() -> None:
    one = BUSY.model_copy(update={"docker": DockerFacts(containers=1)})
    words = ("1 running container of Docker keeps running: live-restore is turned on first",)
    assert impact((), ("restarts docker.service",), {}, one) == words


def test_no_remark_where_docker_is_left_alone() -> None:
    assert impact((), ("restarts chrony.service",), {}, BUSY) == ()
    assert impact((), ("restarts docker.service",), {}, Observed(hostname="one")) == ()


def test_pods_that_had_gpus_before_they_were_given_by_mounts_are_remarked_on() -> None:
    """They keep them as long as they run; a container that starts again asks in a way that the runtime ignores now."""
    nvidia = {"container_runtime_nvidia": True, "container_runtime_gpu_visible_to_all": False}
    words = (
        "pods with GPUs keep them until a container of theirs starts again: recreate them when this run has ended",
        "pods that start before the add-ons are applied get no GPUs",
    )
    old = record()
    assert impact(("container_runtime",), (), nvidia, old) == words
    assert impact(("container_runtime",), (), {**nvidia, "container_runtime_nvidia": False}, old) == ()
    assert impact(("container_runtime",), (), {**nvidia, "container_runtime_gpu_visible_to_all": True}, old) == ()
    assert impact(("base",), (), nvidia, old) == ()
    told = {"container_runtime_gpu_visible_to_all": "1"}
    for seen in (
        Observed(hostname="new"),
        record().model_copy(update={"roles": {"container_runtime": RoleRecord(settings=told)}}),
    ):
        assert impact(("container_runtime",), (), nvidia, seen) == ()


def test_a_store_that_begins_to_speak_tls_is_remarked_on() -> None:
    def seen(*names: str) -> Observed:
        record = RoleRecord(settings=dict.fromkeys(names, "1"))
        return Observed(hostname="one", roles={"component_store": record})

    (words,) = impact(("component_store",), (), {}, seen("component_store_port"))
    assert words.startswith("the store speaks TLS from then on")
    assert impact(("component_store",), (), {}, seen("component_store_private_key")) == ()
    assert impact(("component_store",), (), {}, Observed(hostname="one")) == ()
    assert impact(("container_runtime",), (), {}, seen("component_store_port")) == ()


def test_systemd_has_no_part_in_pods_of_an_add_on() -> None:
    seen = Observed.model_validate({"hostname": "one", "in_use": {"gpu_containers": 1}})
    assert impact((), ("may restart the pods of daemonset/kube-flannel",), {}, seen) == ()


def test_plan_carries_effects_and_remarks(site: Site, inventory: Inventory, snapshot: SnapshotAssertion) -> None:
    seen = converged(inventory)
    seen["worker1"] = BUSY
    runtime = next(phase for phase in make_plan(site, inventory, seen).steps if phase.name == "runtime")
    assert [step.host for step in runtime.hosts] == ["worker1"]
    assert runtime.hosts[0].effects == ("restarts containerd.service", "restarts docker.service")
    assert runtime.hosts[0].impact == snapshot


def test_converged_machines_have_no_effects(site: Site, inventory: Inventory) -> None:
    plan = make_plan(site, inventory, converged(inventory), phases=("runtime",))
    assert [step for phase in plan.steps for step in phase.hosts if step.effects] == []
    assert isinstance(plan.steps[0].hosts[0], HostStep)


IN_USE = {
    "docker_stops_with_containerd": True,
    "gpu_containers": 1,
    "dropped_forwarding": ("iptables FORWARD",),
    "cni_files": ("87-podman-bridge.conflist",),
}


WANTED = {"container_runtime_gpu_visible_to_all": False}


def test_everything_that_is_in_use_is_named(snapshot: SnapshotAssertion) -> None:
    """An old Docker, a container with a GPU, a firewall that drops, a pod network of others: before the first run."""
    seen = Observed.model_validate({"hostname": "one", "docker": {"containers": 1}, "in_use": IN_USE})
    restarts = ("restarts containerd.service", "restarts docker.service")
    assert impact(("container_runtime", "pod_forwarding"), restarts, WANTED, seen) == snapshot


def test_what_was_dealt_with_is_not_named_again() -> None:
    roles: dict[str, dict[str, str]] = {"container_runtime": {}, "pod_forwarding": {}}
    seen = Observed.model_validate({"hostname": "one", "roles": roles, "in_use": IN_USE})
    assert impact(("container_runtime", "pod_forwarding"), (), {}, seen) == ()


@pytest.mark.parametrize(
    ("note", "azure", "said"),
    [
        ('{"folder": "/old"}', {}, "the Docker cache begins empty in /new; what it has stays in /old"),
        ('{"folder": "/new"}', {}, ""),
        ('{"folder": "/new"}', {"account": "a", "container": "c"}, "begins empty in Azure account a, container c;"),
        ("", {}, ""),
    ],
)
def test_a_cache_that_begins_empty_is_told_beforehand(note: str, azure: dict[str, str], said: str) -> None:
    seen = Observed(hostname="one", roles={"docker_cache": RoleRecord(notes={"content": note})})
    variables = {"docker_cache_folder": "/new", "docker_cache_azure": azure, "docker_cache_upstreams": [{}]}
    found = impact(("docker_cache",), (), variables, seen)
    assert bool(found) == bool(said)
    assert said in "; ".join(found)
    if said:
        assert "registry rotate --backend" in found[-1]
    assert impact(("base",), (), variables, seen) == ()
    assert impact(("docker_cache",), (), {**variables, "docker_cache_move": {"source": {}}}, seen) == ()


@pytest.mark.parametrize(
    ("nvidia", "words"),
    [
        (NvidiaFacts(), ("the NVIDIA driver 580 is loaded without a restart",)),
        (
            NvidiaFacts(nouveau=True),
            ("nouveau drives the NVIDIA devices until the machine restarts; from then on the driver 580 does",),
        ),
        (
            NvidiaFacts(driver="535.247.01"),
            (
                "the NVIDIA driver 535.247.01 stays loaded until the machine restarts; from then on it is 580",
                "until then programs that start meet libraries of another version than the driver, and get no GPU",
            ),
        ),
        (
            NvidiaFacts(driver="580.95.05"),
            ("the NVIDIA driver 580.95.05 stays loaded; a newer version of 580 is when the machine restarts",),
        ),
    ],
)
def test_a_restart_that_a_driver_waits_for_is_said_before(nvidia: NvidiaFacts, words: tuple[str, ...]) -> None:
    seen = Observed(hostname="one", nvidia=nvidia)
    assert impact(("base", "nvidia_driver"), (), {"nvidia_driver_branch": 580}, seen) == words
    assert impact(("base", "nvidia_driver"), (), {}, seen) == ()
    assert impact(("base",), (), {"nvidia_driver_branch": 580}, seen) == ()


def test_daemons_of_a_driver_that_run_restart_with_its_packages() -> None:
    seen = Observed(hostname="one", services=("nvidia-persistenced.service",))
    assert effects(("nvidia_driver",), {}, seen) == ("restarts nvidia-persistenced.service",)
