"""The bandwidth run: its jobs, what nccl-tests prints, and the verdict."""

from __future__ import annotations

from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.checks.verdict import Action, Verdict
from pai_install.errors import PaiError
from pai_install.health.act.bandwidth import BandwidthRun, measure, not_run, plan_run
from pai_install.health.checkup import HealthRequest
from pai_install.health.collect.run import PLAYBOOK
from pai_install.health.evidence.document import CommandResult
from pai_install.health.evidence.parse.nccl import COMMAND, parse_all_reduce
from pai_install.health.judge.evaluate import Knowledge, evaluate
from tests.unit.cluster.fake import FakeCluster
from tests.unit.health.machines import CATALOGUE, LIMITS, Box, change, h100, healthy, smi_xml
from tests.unit.health.test_checkup import Make, answer, checkup, document, site  # noqa: F401 - fixtures

CHECK = "nccl-all-reduce"


def printed(*rows: str, ranks: int = 8, tail: str = "# Out of bounds values : 0 OK\n") -> str:
    """What all_reduce_perf prints, in its form."""
    devices = "".join(
        f"#  Rank {rank:2} Group  0 Pid   4242 on  gpu-01 device {rank:2} [0000:{0x18 + rank:02x}:00] NVIDIA H100\n"
        for rank in range(ranks)
    )
    return (
        f"# nThread 1 nGpus {ranks} minBytes 17179869184 maxBytes 17179869184 step: 1048576(bytes) warmup iters: 5\n"
        "#\n# Using devices\n" + devices + "#\n"
        "#                                                              out-of-place                       in-place\n"
        "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw"
        " #wrong\n"
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)\n"
        + "".join(row + "\n" for row in rows)
        + tail
        + "# Avg bus bandwidth    : 471.2\n#\n"
    )


def row(size: str, outside: str, inside: str) -> str:
    """One line of the table; the two words are time, algbw, busbw and #wrong."""
    return f"  {size}    {int(size) // 4}     float     sum      -1    {outside}    {inside}"


GOOD = row("17179869184", "63801  269.27  471.23      0", "63850  269.07  470.87      0")
SLOW = row("17179869184", "90000  190.89  334.06      0", "90010  190.87  334.02      0")
WRONG = row("17179869184", "63801  269.27  471.23      0", "63850  269.07  470.87     12")
UNCHECKED = row("1073741824", "4063.1  264.27  462.47    N/A", "4060.8  264.41  462.73    N/A")


def test_the_result_is_that_of_the_largest_message() -> None:
    found = parse_all_reduce(printed(UNCHECKED, GOOD))
    assert found is not None
    assert (found.bus_gbs, found.message_bytes, found.ranks, found.wrong) == (471.23, 17179869184, 8, 0)


def test_wrong_values_are_counted_in_every_row() -> None:
    assert (found := parse_all_reduce(printed(WRONG, GOOD))) is not None
    assert found.wrong == 12
    assert (found := parse_all_reduce(printed(GOOD, tail="# Out of bounds values : 3 FAILED\n"))) is not None
    assert found.wrong == 3


def test_values_that_were_not_checked_are_not_called_right() -> None:
    assert (found := parse_all_reduce(printed(UNCHECKED, tail=""))) is not None
    assert found.wrong is None


@pytest.mark.parametrize("text", ["", "sh: all_reduce_perf: not found", printed(), "1 2 3 4 5 6 7"])
def test_no_result(text: str) -> None:
    assert parse_all_reduce(text) is None


# The verdict


def eight(result: CommandResult | None) -> Box:
    """A machine with eight H100 and that evidence."""
    return healthy(8).gpus(*(h100(index) for index in range(8))).expecting(count=8).command(COMMAND, result)


@pytest.mark.parametrize(
    ("result", "verdict", "action", "words"),
    [
        (None, Verdict.SKIP, Action.NONE, "--bandwidth-image"),
        (CommandResult(rc=0, stdout=printed(GOOD)), Verdict.PASS, Action.NONE, ""),
        (CommandResult(rc=0, stdout=printed(SLOW)), Verdict.FAIL, Action.DRAIN, "is slow"),
        (CommandResult(rc=1, stdout=printed(WRONG)), Verdict.FAIL, Action.RMA, "wrong values"),
        (CommandResult(rc=0, stdout=printed(WRONG)), Verdict.FAIL, Action.RMA, "wrong values"),
        (CommandResult(rc=0, stdout="hello"), Verdict.UNKNOWN, Action.NONE, "no result"),
        (CommandResult(rc=1, stderr="sh: 1: all_reduce_perf: not found"), Verdict.UNKNOWN, Action.NONE, "image has no"),
        (CommandResult(rc=1, stdout="gpu-01: Test NCCL failure common.cu:1"), Verdict.FAIL, Action.DRAIN, "error"),
        (CommandResult(timed_out=True, stderr="Insufficient nvidia.com/gpu"), Verdict.UNKNOWN, Action.NONE, "Insuffic"),
        (CommandResult(not_started=True, stderr="no cluster"), Verdict.UNKNOWN, Action.NONE, "no cluster"),
    ],
)
def test_verdict(result: CommandResult | None, verdict: Verdict, action: Action, words: str) -> None:
    found = eight(result).finding(CHECK)
    assert (found.verdict, found.action) == (verdict, action)
    assert words in found.message


def test_the_threshold_is_that_of_the_model_and_says_whose() -> None:
    found = eight(CommandResult(rc=0, stdout=printed(SLOW))).finding(CHECK)
    assert (found.value, found.expected) == ("334.06 GB/s", ">= 460 GB/s")
    assert "AZ" in found.source


def test_another_number_of_gpus_has_no_threshold_but_the_sites_own() -> None:
    two = healthy(2).command(COMMAND, CommandResult(rc=0, stdout=printed(SLOW, ranks=2)))
    assert two.finding(CHECK).verdict is Verdict.UNKNOWN
    assert two.finding(CHECK).value == "334.06 GB/s"
    for own, verdict in ((300, Verdict.PASS), (350, Verdict.FAIL)):
        limits = two.knowledge.limits.overridden({"skus": {"h100": {"nccl-busbw": own}}})
        assert two.knowing(limits=limits).finding(CHECK).verdict is verdict


def test_a_model_without_a_threshold_is_unknown() -> None:
    gpus = (change(h100(index), "product_name", "NVIDIA L40S") for index in range(8))
    box = eight(CommandResult(rc=0, stdout=printed(GOOD))).gpus(*gpus)
    assert box.finding(CHECK).verdict is Verdict.UNKNOWN
    assert "nccl-busbw" in box.finding(CHECK).remedy


def slow_peer(*speeds: float) -> dict[str, Verdict]:
    """Machines of one SKU with these speeds -> what the comparison says of each."""
    boxes = []
    for index, speed in enumerate(speeds):
        text = printed(row("17179869184", f"1 1 {speed} 0", f"1 1 {speed} 0"), ranks=2)
        boxes.append(healthy(2, f"gpu-{index}").output(COMMAND, text))
    expected = {box.evidence.machine: box.expected for box in boxes}
    reports = evaluate([box.evidence for box in boxes], Knowledge(LIMITS, CATALOGUE, expected))
    return {
        report.name: finding.verdict
        for report in reports
        for finding in report.findings
        if finding.id == "peers-bandwidth"
    }


def test_a_straggler_is_named_among_its_peers() -> None:
    assert list(slow_peer(480, 471, 475, 440, 400).values()) == [*[Verdict.PASS] * 3, Verdict.WARN, Verdict.FAIL]


def test_two_machines_are_too_few_to_tell_and_none_is_nothing() -> None:
    assert set(slow_peer(480, 200).values()) == {Verdict.SKIP}
    assert slow_peer() == {}


# The jobs


@pytest.mark.parametrize(("memory", "gib"), [("81500 MiB", 16), ("40960 MiB", 8), ("15360 MiB", 2), ("2048 MiB", 1)])
def test_the_message_fits_the_memory(memory: str, gib: int) -> None:
    answers = smi_xml([h100(0), change(h100(1), "fb_memory_usage/total", memory)])
    assert plan_run("nvidia.com/gpu", answers) == BandwidthRun("nvidia.com/gpu", 2, gib)


def test_gpus_that_do_not_answer_are_not_measured() -> None:
    assert plan_run("nvidia.com/gpu", "") is None
    assert plan_run("nvidia.com/gpu", smi_xml([h100(0), change(h100(1), "fb_memory_usage", "GPU is lost")])) is None


ARGUMENTS = ["all_reduce_perf", "-b", "16G", "-e", "16G", "-g", "8", "-w", "5", "-n", "20", "-c", "1"]
LOGS = {"pai-health-bandwidth-gpu-01-x7": printed(GOOD)}


def started(job: Any) -> list[dict[str, Any]]:
    """What becomes of a job: on gpu-01 its pod ends well, elsewhere it finds no GPU."""
    template = job["spec"]["template"]["metadata"]["labels"]
    well = template["pai-install/machine"] == "gpu-01"
    name = f"{job['metadata']['name']}-{'x7' if well else 'k2'}"
    metadata = {"name": name, "namespace": "default", "labels": template}
    return [job, {"kind": "Pod", "metadata": metadata, "status": {"phase": "Succeeded" if well else "Pending"}}]


def jobs_of(cluster: FakeCluster) -> list[dict[str, Any]]:
    return [job for method, jobs in cluster.calls if method == "create" for job in jobs]


def test_one_job_per_machine_with_all_its_gpus() -> None:
    cluster = FakeCluster(makes=started, logged=LOGS)
    runs = {name: BandwidthRun("nvidia.com/gpu", 8, 16) for name in ("gpu-01", "gpu-02")}
    found = measure(cluster, runs, "nccl-tests:13")
    assert found["gpu-01"]["rc"] == 0
    assert parse_all_reduce(found["gpu-01"]["stdout"]) == parse_all_reduce(printed(GOOD))
    assert found["gpu-02"]["timed_out"]
    methods = [method for method, _ in cluster.calls]
    assert methods == ["delete_selected", "create", "wait", "list", "logs_of", "delete_selected"]
    jobs = jobs_of(cluster)
    assert [job["metadata"]["name"] for job in jobs] == [f"pai-health-bandwidth-{name}" for name in sorted(runs)]
    pod = jobs[0]["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"kubernetes.io/hostname": "gpu-01"}
    assert pod["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": "8"}}
    assert pod["containers"][0]["command"][3:] == ARGUMENTS


def test_jobs_end_and_vanish_also_when_nobody_removes_them() -> None:
    cluster = FakeCluster(makes=started, logged=LOGS)
    measure(cluster, {"gpu-01": BandwidthRun("nvidia.com/gpu", 8, 16)}, "i")
    spec = jobs_of(cluster)[0]["spec"]
    assert (spec["backoffLimit"], spec["activeDeadlineSeconds"], spec["ttlSecondsAfterFinished"]) == (0, 600, 600)


def test_jobs_are_removed_when_the_run_fails() -> None:
    cluster = FakeCluster(refuses=PaiError("no way"))
    with pytest.raises(PaiError, match="no way"):
        measure(cluster, {"gpu-01": BandwidthRun("nvidia.com/gpu", 8, 16)}, "i")
    assert [method for method, _ in cluster.calls] == ["delete_selected", "create", "delete_selected"]


def test_a_run_measures_where_gpus_answer_and_says_why_elsewhere(checkup: Make, snapshot: SnapshotAssertion) -> None:  # noqa: F811
    good = healthy(2, "gpu-01").output("kubernetes_nodes", "")
    hung = healthy(2, "gpu-02").command("nvidia_smi_xml", CommandResult(timed_out=True))
    cluster = FakeCluster(makes=started, logged=LOGS)
    machines, _ = checkup(answer("gpu-01", document(good)), answer("gpu-02", document(hung)), cluster=cluster)
    report = machines.run(HealthRequest(limit=("gpu-01", "gpu-02"), bandwidth_image="nccl-tests:13"))
    found = {item.subject: item for item in report.findings if item.id == CHECK}
    assert found["gpu-01"].value == "471.23 GB/s"
    assert found["gpu-02"].message == snapshot
    assert len(jobs_of(cluster)) == 1


def test_without_a_cluster_nothing_is_started(checkup: Make) -> None:  # noqa: F811
    machines, engine = checkup(answer("gpu-01", document(healthy(2, "gpu-01"))))
    report = machines.run(HealthRequest(limit=("gpu-01",), bandwidth_image="nccl-tests:13"))
    finding = next(item for item in report.findings if item.id == CHECK)
    assert finding.verdict is Verdict.UNKNOWN
    assert "cluster" in finding.message
    assert [request.playbook for request in engine.requests] == [PLAYBOOK]


def test_what_was_not_run_is_no_result() -> None:
    assert not_run("why") == {"rc": None, "not_started": True, "stdout": "", "stderr": "why"}
