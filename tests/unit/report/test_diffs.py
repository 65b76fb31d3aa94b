"""Differences out of every form in which modules give them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.report.diffs import ChangeCollector, FileChange, changes_summary, changes_text
from pai_install.report.notices import TaskFinished


def collected(outcome: str = "changed", **result: Any) -> tuple[FileChange, ...]:
    collector = ChangeCollector()
    collector.notice(TaskFinished("base", "one", "Write", "x:1", outcome, 0.1, result))
    return collector.changes


FILE = {"before": "a\nb\n", "after": "a\nc\n", "before_header": "/etc/x", "after_header": "/etc/x"}
UNIFIED = "--- /etc/x\n+++ /etc/x\n@@ -1,2 +1,2 @@\n a\n-b\n+c"


@pytest.mark.parametrize(
    ("result", "diff"),
    [
        ({"diff": FILE}, UNIFIED),
        ({"diff": [FILE]}, UNIFIED),
        ({"results": [{"diff": FILE}, {"diff": []}, "odd"]}, UNIFIED),
        ({"diff": {"prepared": "+ package chrony\n"}}, "+ package chrony"),
        (
            {"diff": {"before": {"mode": "0644", "path": "/x"}, "after": {"mode": "0600", "path": "/x"}}},
            "--- before\n+++ after\n@@ -1,2 +1,2 @@\n-mode: 0644\n+mode: 0600\n path: /x",
        ),
        ({"diff": {"before": "", "after": "new\n"}}, "--- before\n+++ after\n@@ -0,0 +1 @@\n+new"),
        ({"diff": {"before": "same", "after": "same"}}, ""),
        ({"diff": {"before": None, "after": None}}, ""),
        ({"diff": "odd"}, ""),
        ({"censored": "hidden"}, ""),
        ({}, ""),
    ],
)
def test_difference(result: dict[str, Any], diff: str) -> None:
    (change,) = collected(**result)
    assert replace(change, digest="", counts=()) == FileChange("base", "one", "Write", diff)


@pytest.mark.parametrize("outcome", ["ok", "skipped", "failed", "unreachable", "ignored"])
def test_only_changes_count(outcome: str) -> None:
    assert collected(outcome, diff=FILE) == ()


def test_endless_difference_is_cut() -> None:
    text = "\n".join(str(number) for number in range(1000))
    (change,) = collected(diff={"before": "", "after": text})
    assert change.diff.splitlines()[-1] == "... 603 more lines"
    assert len(change.diff.splitlines()) == 401


def test_machines_with_the_same_change_share_it(snapshot: SnapshotAssertion) -> None:
    changes = [FileChange("base", host, "Write", "+x") for host in ("one", "two")]
    changes.append(FileChange("base", "three", "Write", "+y"))
    assert changes_text(changes) == snapshot
    assert changes_text([]) == ""


def digest(**diff: Any) -> str:
    (change,) = collected(diff=diff)
    return change.digest


def test_digest_tells_changes_apart_also_where_the_text_is_cut() -> None:
    text = "\n".join(str(number) for number in range(1000))
    assert digest(before="", after=text) != digest(before="", after=text + "1")
    assert digest(before="by hand", after="x") != digest(before="by another hand", after="x")


def test_digest_is_the_same_at_every_look() -> None:
    assert digest(before="a", after="b", after_header="/tmp/1/x.j2") == digest(
        before="a", after="b", after_header="/tmp/2/x.j2"
    )
    first, second = (
        f"diff -u -N /tmp/LIVE-{n}/x /tmp/MERGED-{n}/x\n--- /tmp/LIVE-{n}/x\t2026-01-0{n}\n"
        f"+++ /tmp/MERGED-{n}/x\n+  uid: 0000-{n}\n+  creationTimestamp: 2026-01-0{n}\n+  replicas: 2\n"
        for n in (1, 2)
    )
    assert digest(prepared=first) == digest(prepared=second)
    assert digest(prepared=first) != digest(prepared=first.replace("replicas: 2", "replicas: 3"))


def counted(**result: Any) -> list[tuple[str, int, int]]:
    (change,) = collected(**result)
    return [(count.path, count.added, count.removed) for count in change.counts]


KUBECTL = """\
diff -u -N /tmp/LIVE/v1.ConfigMap.a.b /tmp/MERGED/v1.ConfigMap.a.b
--- /tmp/LIVE/v1.ConfigMap.a.b\t2026
+++ /tmp/MERGED/v1.ConfigMap.a.b\t2026
@@ -1 +1,2 @@
-a: 1
+a: 2
+b: 3
diff -u -N /tmp/LIVE/v1.ConfigMap.a.c /tmp/MERGED/v1.ConfigMap.a.c
--- /tmp/LIVE/v1.ConfigMap.a.c\t2026
+++ /tmp/MERGED/v1.ConfigMap.a.c\t2026
@@ -0,0 +1,3 @@
+data:
+  main.py: |
+    secret_sauce()
"""


@pytest.mark.parametrize(
    ("diff", "counts"),
    [
        (FILE, [("/etc/x", 1, 1)]),
        ({"prepared": KUBECTL}, [("v1.ConfigMap.a.b", 2, 1), ("v1.ConfigMap.a.c", 3, 0)]),
        ({"prepared": "+ package chrony\n"}, [("", 1, 0)]),
        ({"before": {"mode": "0644", "path": "/x"}, "after": {"mode": "0600", "path": "/x"}}, [("/x", 1, 1)]),
        ({"before": "", "after": "1\n" * 1000, "before_header": "/y"}, [("/y", 1000, 0)]),
        ({"before": "", "after": "1\n" * 5000, "before_header": "/y"}, [("/y", 5000, 0)]),
        ({"before": "same", "after": "same"}, []),
    ],
)
def test_lines_are_counted_for_each_file(diff: dict[str, Any], counts: list[tuple[str, int, int]]) -> None:
    assert counted(diff=diff) == counts


@pytest.mark.parametrize(
    "diff",
    [
        {"before": "", "after": "secret_sauce()\n", "before_header": "/usr/lib/x/main.py"},
        {"before": "", "after": "#!/bin/sh\nsecret_sauce\n", "before_header": "/usr/bin/x"},
        {"prepared": KUBECTL},
    ],
)
def test_the_content_of_our_programs_is_never_shown(diff: dict[str, Any]) -> None:
    changes = collected(diff=diff)
    assert "secret_sauce" not in changes_text(changes)
    assert "program of pai-install" in changes_text(changes)


def test_the_summary_has_a_line_for_each_file_and_one_for_the_programs_of_a_folder(snapshot: SnapshotAssertion) -> None:
    programs = [{"before": "", "after": "1\n", "before_header": f"/usr/lib/x/{name}.py"} for name in "ab"]
    result: dict[str, Any] = {"diff": [FILE, *programs]}
    changes = [replace(change, host=host) for host in ("one", "two") for change in collected(**result)]
    changes += collected()
    changes += collected(diff={"prepared": "1 newly installed"})
    assert changes_summary(changes).splitlines() == snapshot
    assert changes_summary([]) == ""
