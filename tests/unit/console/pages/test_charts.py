"""Charts as SVG, and what pages say without values."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from pai_install.console.monitoring import (
    CURVES,
    Curve,
    MonitoringReader,
    Query,
    alerts_of,
    fill_of_node,
    gpus_of_groups,
    gpus_of_pods,
    load_of_node,
    transfer_of_node,
)
from pai_install.console.pages.charts import HEIGHT, WIDTH, drawn
from pai_install.console.services import ConsoleServices
from pai_install.console.settings import ConsoleSettings, MonitoringSettings
from pai_install.monitoring.rules import RECORDED
from tests.ports import free_port
from tests.unit.console.pages.test_jobs import shown
from tests.unit.console.pages.test_waiting import used
from tests.unit.console.routes.test_jobs import train

__all__ = ["train", "used"]


def test_a_curve_is_in_its_picture() -> None:
    curve = Curve("avg", tuple((1000.0 + 60 * number, float(number % 130)) for number in range(61)))
    found = drawn([curve], 1, percent=True)
    ((piece,),) = [line.pieces for line in found.lines]
    points = [tuple(map(float, point.split(","))) for point in piece.split()]
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in points)
    assert points[-1][0] == WIDTH
    (line,) = found.lines
    assert (line.low, line.high, line.last, found.top) == (0, 60, 60, 100)


def test_a_gap_is_no_line() -> None:
    curve = Curve("avg", ((0, 1), (60, 1), (3000, 2), (3060, 2)))
    assert len(drawn([curve], 1, percent=False).lines[0].pieces) == 2
    assert drawn([], 1, percent=True).lines == ()


@pytest.mark.parametrize("name", ['x"} or vector(1)', "a\nb", "", "a" * 300, "A|B", ".*"])
def test_queries_have_no_text_of_a_user(name: str) -> None:
    assert gpus_of_pods("vision", [name]) == ()
    assert gpus_of_pods(name, ["pod"]) == ()
    assert gpus_of_groups([name]) == ()
    assert (load_of_node(name), fill_of_node(name), transfer_of_node(name)) == ((), (), ())


def test_queries_name_what_was_asked() -> None:
    first, *_ = gpus_of_pods("vision", ["a.b", "c"])
    assert first == Query("max", 'max(DCGM_FI_DEV_GPU_UTIL{namespace="vision",pod=~"a[.]b|c"})')


def test_alerts_are_of_namespaces() -> None:
    alerts: list[dict[str, Any]] = [
        {"labels": {"namespace": "vision"}},
        {"labels": {"namespace": "nlp"}},
        {"labels": {}},
        {"labels": 3},
    ]
    assert alerts_of(alerts, frozenset({"vision"})) == alerts[:1]
    assert alerts_of(alerts, None) == alerts


def test_pages_say_that_there_is_no_monitoring(used: TestClient, services: ConsoleServices) -> None:
    pages = ("/", "/jobs/carol~holds")
    assert "<svg" not in shown(used, "/jobs/alice~train", "alice")
    for path in pages:
        assert "The site has no monitoring" in shown(used, path, "alice")
    silent = f"http://127.0.0.1:{free_port()}"
    settings = replace_settings(services, MonitoringSettings(prometheus=silent, alertmanager=silent))
    object.__setattr__(services, "monitoring", replace(services, settings=settings).monitoring)
    for path in pages:
        assert "does not answer on this control plane" in shown(used, path, "alice")
    answer = used.get("/rest-server/api/v2/alerts", headers={"Authorization": "Bearer alice"})
    assert (answer.status_code, set(answer.json())) == (503, {"code", "message"})


def replace_settings(services: ConsoleServices, monitoring: MonitoringSettings) -> ConsoleSettings:
    return services.settings.model_copy(update={"monitoring": monitoring})


def test_members_see_no_load_of_nodes(used: TestClient) -> None:
    assert not re.search("Load in percent", shown(used, "/nodes/g1", "alice"))
    page = shown(used, "/nodes/g1", "root")
    assert re.search("Load in percent", page)
    assert page.count("The site has no monitoring") == 1


def test_the_load_of_a_node_is_three_charts(
    used: TestClient, services: ConsoleServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory, file systems, network, and disks are those of the host."""
    asked: list[Query] = []

    def curves(_reader: MonitoringReader, queries: Any, _hours: float) -> tuple[Curve, ...]:
        asked.extend(queries)
        return tuple(Curve(one.key, ((0, 1), (60, 3.5))) for one in queries)

    monkeypatch.setattr(MonitoringReader, "curves", curves)
    silent = f"http://127.0.0.1:{free_port()}"
    settings = replace_settings(services, MonitoringSettings(prometheus=silent, alertmanager=silent))
    object.__setattr__(services, "monitoring", replace(services, settings=settings).monitoring)
    page = shown(used, "/nodes/g1", "root")
    for words in ("Load in percent", "Memory and file systems in percent", "Network and disks in MB/s"):
        assert f"<h2>{words}" in page
    assert page.count("<svg viewBox") == 3
    assert {one.key for one in asked} == set(CURVES[5:])
    recorded = {word for one in asked for word in re.findall("pai_node_[a-z_]+", one.expression)}
    assert recorded <= set(RECORDED)
    assert all('{node="g1"}' in one.expression or 'node="g1"}' in one.expression for one in asked)
