"""Prometheus, Alertmanager, and node exporters on loopback with the files of a site: from a dead node to a web hook.

The nodes are static targets, because there is no Kubernetes here. Intervals and `for` are shorter.
"""

from __future__ import annotations

import json
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from jinja2 import Environment, FileSystemLoader

from pai_install.monitoring.alertmanager import TEST, alerts_in, list_program, silence_program, trial_program
from pai_install.monitoring.routes import SECRETS, routing_of
from pai_install.monitoring.rules import rule_groups
from pai_install.monitoring.scrape import TLS, Scraping, configuration
from pai_install.ports import ALERTMANAGER_PORT
from pai_install.registry.compile import SCRAPER_NAME, served_names
from pai_install.registry.identity import Identity, make_identity
from pai_install.site import Site, load_site
from pai_install.site.services.own_monitoring import Monitoring
from tests.integration.control_plane import running
from tests.ports import free_ports
from tests.unit.site.sites import write_site
from tests.waiting import until
from tests.web_hook import Hook, web_hook

ROOT = Path(__file__).parents[3]
NODES = ("n1", "n2")


@dataclass
class Machinery:
    """What runs. stop: kills the exporter of a node, or a program of the add-on; start: starts it."""

    hook: Hook
    identity: Identity
    ports: dict[str, int]
    manager: str
    server: str
    start: Callable[[str], None]
    stop: Callable[[str], None]
    folder: Path

    def heat(self, celsius: int) -> None:
        """Writes the temperature of the GPU of all nodes."""
        (self.folder / "text/gpu.prom").write_text(f'DCGM_FI_DEV_GPU_TEMP{{gpu="0",UUID="GPU-1"}} {celsius}\n')

    def ask(self, program: Sequence[str]) -> str:
        """Runs a program that the verbs run on the machine."""
        shown = [word.replace(f"http://127.0.0.1:{ALERTMANAGER_PORT}", self.manager) for word in program]
        return subprocess.run(shown, capture_output=True, text=True, check=True).stdout


def web_config(folder: Path, identity: Identity) -> Path:
    """The files that the role node_exporter writes."""
    assert identity.exporter is not None
    (folder / "server.pem").write_text(identity.exporter.chain)
    (folder / "clients.pem").write_text(identity.bundle)
    templates = Environment(loader=FileSystemLoader(ROOT / "roles/node_exporter/templates"), autoescape=False)  # noqa: S701 - no HTML
    text = templates.get_template("web.yml.j2").render(node_exporter_client=SCRAPER_NAME)
    text = text.replace("/run/credentials/pai-node-exporter.service/", f"{folder}/")
    text = text.replace("/etc/pai-install/node-exporter/", f"{folder}/")
    (folder / "web.yml").write_text(text)
    return folder / "web.yml"


def store_files(folder: Path, site: Site, identity: Identity, ports: dict[str, int], manager: int) -> None:
    """Configuration and rules of Prometheus, with static nodes."""
    scraper = identity.scraper
    assert scraper is not None
    for name, text in (("tls.crt", scraper.certificate), ("tls.key", scraper.key.get_secret_value())):
        (folder / name).write_text(text)
    (folder / "ca.crt").write_text(identity.bundle)
    made = configuration(site, Scraping(1, 9100, evaluate_s=1), "")
    job = next(job for job in made["scrape_configs"] if job["job_name"] == "node")
    job.pop("kubernetes_sd_configs")
    job["relabel_configs"] = [{"target_label": "job", "replacement": "node"}]
    job["static_configs"] = [
        {"targets": [f"127.0.0.1:{port}"], "labels": {"node": node, "instance": node}} for node, port in ports.items()
    ]
    # a series whose reading is late ends, and its alert with it
    job["scrape_interval"] = job["scrape_timeout"] = "3s"
    text = json.dumps({**made, "scrape_configs": [job]}).replace(TLS, str(folder))
    text = text.replace("/etc/prometheus/rules.yml", str(folder / "rules.yml"))
    (folder / "prometheus.yml").write_text(text.replace(f"127.0.0.1:{ALERTMANAGER_PORT}", f"127.0.0.1:{manager}"))
    groups = rule_groups(Monitoring())
    for group in groups["groups"]:
        # An alert ends by itself after four intervals without Prometheus, which starts slowly beside other work.
        group["interval"] = "2s"
        for rule in group["rules"]:
            rule.pop("for", None)
    (folder / "rules.yml").write_text(json.dumps(groups))


def manager_files(folder: Path, site: Site, interval: str = "2s") -> None:
    """Configuration and secrets of Alertmanager. interval: between notifications of a group."""
    routing = routing_of(site)
    text = json.dumps(routing.configuration).replace(SECRETS, str(folder))
    for before, after in (('"10s"', '"1s"'), ('"5m"', f'"{interval}"'), ('"1m"', f'"{interval}"')):
        text = text.replace(before, after)
    (folder / "alertmanager.yml").write_text(text)
    for name, content in routing.secrets.items():
        (folder / name).write_text(content)


def arguments(program: str, folder: Path, port: int) -> list[str]:
    """The arguments of a program in the add-on, for this folder and port."""
    made = yaml.safe_load_all((ROOT / "addons/monitoring/tests/plain.expected.yml").read_text())
    specs = [it["spec"]["template"]["spec"] for it in made if it["kind"] in ("Deployment", "DaemonSet")]
    (found,) = (it["args"] for spec in specs for it in spec["containers"] if it["name"] == program)
    own = {
        "--config.file": f"{folder}/{program}.yml",
        "--web.listen-address": f"127.0.0.1:{port}",
        "--storage.tsdb.path": f"{folder}/tsdb",
        "--storage.path": f"{folder}/am",
        # a minute otherwise
        "--data.maintenance-interval": "1s",
    }
    pairs = [word.partition("=") for word in found]
    return [f"{name}={own.get(name, value)}" if equals else name for name, equals, value in pairs]


# program of the add-on -> what takes a minute otherwise
FASTER = {"alertmanager": [], "prometheus": ["--config.auto-reload-interval=1s"]}


@pytest.fixture
def resend() -> str:
    """When an alert is sent again. Below the interval of the rules: each evaluation sends the alerts of all nodes."""
    return "500ms"


@pytest.fixture
def machinery(
    prometheus: Path, alertmanager: Path, node_exporter: Path, tmp_path: Path, resend: str
) -> Iterator[Machinery]:
    with ExitStack() as stack, web_hook() as receiver:
        services = (
            f"monitoring: {{web-hooks: [{{name: t, url: 'http://127.0.0.1:{receiver.port}/', token: s3cret}}]}}\n"
        )
        config = "user: pai\npassword: example\n"
        site = load_site(write_site(tmp_path / "site", config=config, services=services)).site
        identity = make_identity(served_names(site), datetime.now(UTC))
        ports, web = dict(zip(NODES, free_ports(len(NODES)), strict=True)), web_config(tmp_path, identity)
        started: dict[str, ExitStack] = {}
        manager, server = free_ports(2)
        store_files(tmp_path, site, identity, ports, manager)
        manager_files(tmp_path, site)

        def words(name: str) -> list[str | Path]:
            if name in FASTER:
                program, port = {"alertmanager": (alertmanager, manager), "prometheus": (prometheus, server)}[name]
                delay = [f"--rules.alert.resend-delay={resend}"] if name == "prometheus" else []
                return [program, *arguments(name, tmp_path, port), *FASTER[name], *delay]
            found: list[str | Path] = [node_exporter, f"--web.listen-address=127.0.0.1:{ports[name]}"]
            found += [f"--web.config.file={web}", "--collector.disable-defaults"]
            return [*found, "--collector.textfile", f"--collector.textfile.directory={tmp_path}/text"]

        def start(name: str) -> None:
            started[name] = ExitStack()
            started[name].enter_context(running(words(name), tmp_path / f"{name}.log"))
            stack.callback(started[name].close)

        urls = f"http://127.0.0.1:{manager}", f"http://127.0.0.1:{server}"
        made = Machinery(receiver, identity, ports, *urls, start, lambda name: started[name].close(), tmp_path)
        (tmp_path / "text").mkdir()
        made.heat(96)
        for name in (*NODES, *FASTER):
            start(name)
        yield made


def wait_for_log(machinery: Machinery, alert: str) -> None:
    """Waits until the notifications of the alert are in Alertmanager's file. A program that was killed knows no others.

    The file that is written just now may be without the last one. The next one has it.
    """
    log, seen = machinery.folder / "am/nflog", set[int]()

    def written() -> bool:
        if log.is_file() and alert.encode() in log.read_bytes():
            seen.add(log.stat().st_mtime_ns)
        return len(seen) > 1

    until(written)


def listed(machinery: Machinery) -> list[tuple[str, str]]:
    """Name and node of each alert that is shown."""
    return [(alert.name, alert.subject) for alert in alerts_in(machinery.ask(list_program()))]


def series(machinery: Machinery, query: str) -> list[dict[str, Any]]:
    url = f"{machinery.server}/api/v1/query?query={query}"
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - on loopback
            found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
    except OSError:  # it still starts
        return []
    return found


def hot(machinery: Machinery) -> list[tuple[str, str]]:
    return [entry for entry in machinery.hook.alerts("firing") if entry[0] == "GpuTooHot"]


def test_a_dead_node_is_one_alert_and_resolves(machinery: Machinery) -> None:
    until(lambda: {node for _, node in hot(machinery)} == set(NODES))
    assert {authorization for authorization, _ in machinery.hook.got} == {"Bearer s3cret"}
    machinery.hook.clear()
    machinery.stop("n2")
    until(lambda: ("MachineDown", "n2") in machinery.hook.alerts("firing"))
    until(lambda: listed(machinery) == [("MachineDown", "n2"), ("GpuTooHot", "n1")])
    machinery.start("n2")
    until(lambda: ("MachineDown", "n2") in machinery.hook.alerts("resolved"))
    named = {name for name, _ in machinery.hook.alerts("firing")}
    assert named <= {"MachineDown", "GpuTooHot"}, "Watchdog and others are no message"


@pytest.mark.parametrize("program", FASTER)
def test_what_ends_while_a_program_is_away_resolves(machinery: Machinery, program: str) -> None:
    until(lambda: {node for _, node in hot(machinery)} == set(NODES))
    wait_for_log(machinery, "GpuTooHot")
    machinery.stop(program)
    machinery.heat(40)
    if program == "prometheus":
        time.sleep(2)
    else:
        # An Alertmanager that was killed names only nodes in its first `resolved`: one that recovers later is lost.
        until(lambda: series(machinery, "up") and not series(machinery, 'ALERTS{alertname="GpuTooHot"}'))
    machinery.start(program)
    until(lambda: {it for it in machinery.hook.alerts("resolved") if it[0] == "GpuTooHot"} == both("GpuTooHot"))


# Alertmanager holds an alert for four delays without Prometheus, which may take some seconds to start.
@pytest.mark.parametrize(("program", "resend"), [("alertmanager", "500ms"), ("prometheus", "10s")])
def test_what_begins_while_a_program_is_away_is_told_and_nothing_twice(machinery: Machinery, program: str) -> None:
    until(lambda: {node for _, node in hot(machinery)} == set(NODES))
    wait_for_log(machinery, "GpuTooHot")
    machinery.hook.clear()
    machinery.stop(program)
    machinery.stop("n2")
    time.sleep(2)
    machinery.start(program)
    until(lambda: ("MachineDown", "n2") in machinery.hook.alerts("firing"))
    assert ("GpuTooHot", "n1") not in machinery.hook.alerts("resolved")


def test_another_configuration_of_prometheus_needs_no_restart(machinery: Machinery) -> None:
    until(lambda: {node for _, node in hot(machinery)} == set(NODES))
    machinery.hook.clear()
    path = machinery.folder / "rules.yml"
    rules = json.loads(path.read_text())
    labels = {"severity": "error", "node": "n1"}
    rules["groups"].append({"name": "own", "rules": [{"alert": "Own", "expr": "vector(1)", "labels": labels}]})
    path.write_text(json.dumps(rules))
    machinery.heat(40)
    until(lambda: ("Own", "n1") in machinery.hook.alerts("firing"))
    until(lambda: both("GpuTooHot") <= set(machinery.hook.alerts("resolved")))
    path.write_text("groups: [{}]")
    until(lambda: "\nprometheus_config_last_reload_successful 0\n" in metrics(machinery.server))


def metrics(url: str) -> str:
    """The metrics of a program."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:  # noqa: S310 - on loopback
        text: str = answer.read().decode()
    return text


def both(name: str) -> set[tuple[str, str]]:
    """An alert of both nodes."""
    return {(name, node) for node in NODES}


def test_a_silence_keeps_a_node_quiet(machinery: Machinery) -> None:
    until(lambda: hot(machinery))
    machinery.ask(silence_program("n1", datetime.now(UTC), 1, "me", "work"))
    until(lambda: [it.subject for it in alerts_in(machinery.ask(list_program()))] == ["n2"])


def test_a_test_alert_reaches_the_hook(machinery: Machinery) -> None:
    until(lambda: hot(machinery))
    machinery.ask(trial_program())
    until(lambda: (TEST, "") in machinery.hook.alerts("firing"))


# what fires of one node -> what is shown of it
CAUSES = (
    (("MachineDown", "GpuXidFatal", "PodOfSystemNotReady"), {"MachineDown"}),
    (("NodeInMaintenance", "GpuXidFatal", "PodOfSystemNotReady", "NodePressure"), {"GpuXidFatal"}),
    (("KubeletDown", "NodeUnreachable", "PodOfSystemNotReady", "GpuTooHot"), {"KubeletDown", "GpuTooHot"}),
    (("NodeNotReady", "PodOfSystemNotReady", "GpuTooHot"), {"NodeNotReady", "GpuTooHot"}),
)


def test_a_cause_silences_its_effects_on_its_node_alone(machinery: Machinery) -> None:
    until(lambda: hot(machinery))
    labels = {
        rule["alert"]: rule["labels"]
        for group in rule_groups(Monitoring())["groups"]
        for rule in group["rules"]
        if "alert" in rule
    }
    fired = [
        {"labels": {"alertname": name, "node": f"cause-{number}", **labels[name]}}
        for number, (names, _) in enumerate(CAUSES)
        for name in names
    ]
    body = json.dumps(fired).encode()
    request = urllib.request.Request(f"{machinery.manager}/api/v2/alerts", body, {"Content-Type": "application/json"})  # noqa: S310 - on loopback
    urllib.request.urlopen(request, timeout=10).close()  # noqa: S310
    wanted = {(f"cause-{number}", name) for number, (_, shown) in enumerate(CAUSES) for name in shown}

    def shown() -> set[tuple[str, str]]:
        listed = alerts_in(machinery.ask(list_program()))
        return {(alert.subject, alert.name) for alert in listed if alert.subject.startswith("cause-")}

    until(lambda: shown() == wanted)


def test_only_prometheus_reads_an_exporter(machinery: Machinery, tmp_path: Path) -> None:
    until(lambda: series(machinery, "up==1"))
    url = f"https://127.0.0.1:{machinery.ports['n1']}/metrics"
    exporter = machinery.identity.exporter
    assert exporter is not None
    (tmp_path / "other.pem").write_text(exporter.chain)
    for chain in ("", str(tmp_path / "other.pem")):
        context = ssl.create_default_context(cadata=machinery.identity.bundle)
        context.check_hostname = False
        if chain:
            context.load_cert_chain(chain)
        with pytest.raises((OSError, ssl.SSLError)):
            urllib.request.urlopen(url, timeout=5, context=context).read()


def test_the_files_are_yaml(machinery: Machinery, tmp_path: Path) -> None:
    for name in ("prometheus.yml", "rules.yml", "alertmanager.yml", "web.yml"):
        assert yaml.safe_load((tmp_path / name).read_text())
