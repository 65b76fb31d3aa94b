"""The store of logs on real machines: lines of pods that are gone, and nothing but data when it is switched off."""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from pai_install.monitoring.log_store import query_program
from pai_install.parts.logs import BUFFER, FOLDER
from pai_install.ports import LOG_COLLECTOR_PORT, LOG_STORE_PORT

from .conftest import KEPT, Cluster, equip, until
from .monitored import DEAD, MACHINES, MASTER, WELL, idle, kept_or_new

# a kept lab has the lines of pods of earlier runs
RUN = f"{int(time.time()):x}"
pytestmark = [pytest.mark.lab, pytest.mark.soak]

SUBNET = "172.30.94"
SERVICES = """\
scheduler: {type: kueue}
virtual-clusters:
  - {name: default, quota: [{sku: lab-gpu, machines: 1}]}
"""
LOGS = "logs: {retention: 7d}\n"
FORGED = {"_msg": "x", "file": "/var/log/pods/kube-system_etcd_1/main/0.log", "kubernetes.pod_namespace": "kube-system"}
LIST = shlex.join(query_program({"query": "* | uniq by (file, node)"}))


@pytest.fixture(scope="module")
def before() -> dict[str, Mapping[str, int]]:
    """Tasks of a run with nothing to do, without the store."""
    return {}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, before: dict[str, Mapping[str, int]]) -> Iterator[Cluster]:
    folder: Path = tmp_path_factory.mktemp("logs")
    with ExitStack() as stack:
        made = stack.enter_context(kept_or_new(folder, SUBNET))
        if not KEPT:
            (made.site / "services-configuration.yaml").write_text(SERVICES)
            equip(made.site)
            done = made.apply()
            assert done["ok"], done["stderr"]
            before["tasks"] = idle(made)[1]
        (made.site / "services-configuration.yaml").write_text(SERVICES + LOGS)
        equip(made.site)
        done = made.apply()
        assert done["ok"], done["stderr"]
        yield made


def pod(cluster: Cluster, name: str, script: str, node: str = WELL) -> None:
    """A pod that runs to its end."""
    image = cluster.on(node, "ctr -n k8s.io images ls -q | grep ^registry.*/busybox:").split()[0]
    place = json.dumps({"spec": {"nodeName": node}})
    words = ("--restart=Never", f"--overrides={place}", "--command", "--", "/bin/busybox", "sh", "-c", script)
    cluster.kubectl("run", name, f"--image={image}", *words)


def ended(cluster: Cluster, name: str) -> None:
    """Waits for the end of a pod, and deletes it."""
    phase = ("get", "pod", name, "--output=jsonpath={.status.phase}")
    assert until(lambda: cluster.kubectl(*phase) in ("Succeeded", "Failed"), 180)
    cluster.kubectl("delete", "pod", name, "--wait=true")


def log(cluster: Cluster, *words: str) -> list[str]:
    return cluster.run("logs", *words).stdout.splitlines()


def test_a_second_run_changes_nothing_and_has_no_task_more(
    house: Cluster, before: dict[str, Mapping[str, int]]
) -> None:
    _, tasks = idle(house)
    if "tasks" not in before:
        pytest.skip("a kept lab has the store already")
    assert tasks == before["tasks"]


def test_each_machine_is_collected(house: Cluster) -> None:
    def nodes() -> set[str]:
        rows = [json.loads(row) for row in house.on(MASTER, LIST).splitlines() if row]
        return {
            row["node"] for row in rows if re.match(r"/var/log/pods/[^_]+_[^_]+_[^_]+/[^/]+/\d+\.log$", row["file"])
        }

    assert until(lambda: nodes() == set(MACHINES), 120)


def test_a_pod_that_is_gone(house: Cluster) -> None:
    escape = "\\033]0;evil\\007"
    pod(house, f"gone-{RUN}", f"echo one; printf '{escape}\\n'; echo '{json.dumps(FORGED)}'; echo last")
    ended(house, f"gone-{RUN}")
    wanted = ["one", "\\u001b]0;evil\\u0007", json.dumps(FORGED), "last"]
    assert until(lambda: log(house, f"gone-{RUN}") == wanted, 60)
    assert log(house, f"pod/default/gone-{RUN}", "--lines", "1") == ["last"]
    assert log(house, f"gone-{RUN}", "--grep", "^o") == ["one"]
    assert log(house, f"gone-{RUN}", "--since", "2099-01-01") == []


def test_rotated_files_are_complete(house: Cluster) -> None:
    """The kubelet begins a new file at 10 MiB."""
    line = "x" * 200
    pod(house, f"long-{RUN}", f"i=0; while [ $i -lt 150000 ]; do echo $i {line}; i=$((i+1)); done")
    ended(house, f"long-{RUN}")
    assert until(lambda: (log(house, f"long-{RUN}", "--lines", "1") or [""])[0].startswith("149999 "), 180)
    numbers = [int(text.partition(" ")[0]) for text in log(house, f"long-{RUN}", "--lines", "0")]
    assert numbers == list(range(150_000))


def test_a_pod_that_floods_hides_no_line_of_its_neighbour(house: Cluster) -> None:
    """Half a million lines at once, on the machine of a pod that writes one now and then."""
    pod(house, f"flood-{RUN}", f"yes {'y' * 100} | head -n 500000")
    pod(house, f"quiet-{RUN}", "i=0; while [ $i -lt 50 ]; do echo line $i; sleep 0.2; i=$((i+1)); done")
    ended(house, f"quiet-{RUN}")
    assert until(lambda: log(house, f"quiet-{RUN}") == [f"line {number}" for number in range(50)], 120)
    ended(house, f"flood-{RUN}")


def test_lines_arrive_after_the_store_was_away(house: Cluster) -> None:
    store = ("--namespace=pai-logs", "deployment/logs")
    house.kubectl("scale", *store, "--replicas=0")
    pod(house, f"meanwhile-{RUN}", "echo meanwhile", DEAD)
    ended(house, f"meanwhile-{RUN}")
    house.kubectl("scale", *store, "--replicas=1")
    assert until(lambda: log(house, f"meanwhile-{RUN}") == ["meanwhile"], 240)


REACH = (
    "import http.client as h, ssl, sys; made = ssl.create_default_context(); made.check_hostname = False; "
    "made.verify_mode = ssl.CERT_NONE; host, port, secure = sys.argv[1:]; "
    "one = h.HTTPSConnection(host, int(port), timeout=5, context=made) if secure == 'tls' "
    "else h.HTTPConnection(host, int(port), timeout=5); one.request('GET', '/health'); print(one.getresponse().status)"
)


def reached(house: Cluster, machine: str, host: str, port: int, how: str) -> str:
    """The status of an answer, or the error."""
    return house.on(machine, f'python3 -c "{REACH}" {host} {port} {how} 2>&1 | tail -n 1').strip()


def test_no_one_sends_without_a_certificate_or_asks_from_outside(house: Cluster) -> None:
    address = house.kubectl("get", "node", MASTER, "--output=jsonpath={.status.addresses[0].address}")
    assert reached(house, MASTER, "127.0.0.1", LOG_STORE_PORT, "plain") == "200"
    assert "refused" in reached(house, WELL, address, LOG_STORE_PORT, "plain")
    assert "ssl" in reached(house, WELL, address, LOG_COLLECTOR_PORT, "tls").lower()


def test_switched_off_leaves_the_data_alone(house: Cluster) -> None:
    (house.site / "services-configuration.yaml").write_text(SERVICES + "logs: false\n")
    effects = json.dumps(house.plan())
    assert FOLDER in effects
    assert BUFFER in effects
    done = house.apply()
    assert done["ok"], done["stderr"]
    assert house.to_change() == []
    assert house.ask("get", "namespace", "pai-logs").returncode != 0
    remains = {host: house.on(host, f"ls -d {FOLDER} {BUFFER} 2>/dev/null || true").split() for host in MACHINES}
    assert remains == {MASTER: [BUFFER, FOLDER], WELL: [BUFFER], DEAD: [BUFFER]}
