"""The sections scheduler and virtual-clusters: every rule at its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.site.load import read_site
from tests.unit.site.rules.scheduling.sites import ABSENT, GROUPS, LAYOUT, assert_refused, lines, marked, problems_of
from tests.unit.site.sites import CONFIG, write_site

VALID = """\
scheduler:
  type: kueue
  topology:
    - {name: rack, label: rack}
virtual-clusters:
  - name: research
    groups: [Vision_1, nlp]
    quota:
      - sku: a100
        machines: 1
        lend: 4
        borrow: 16
      - {sku: epyc, cores: 10, memory: 64Gi}
    pinned: [g3]
    priorities: {usual: test, highest: prod}
  - name: default
    quota:
      - {sku: a100, devices: 8, lend: none}
      - {sku: epyc, cores: 26}
"""
HEAD = "scheduler: {type: kueue}\nvirtual-clusters:\n"


def one(entry: str, scheduler: str = "kueue") -> str:
    """A site with one virtual cluster: what stands after its name."""
    return f"scheduler: {{type: {scheduler}}}\nvirtual-clusters:\n  - name: a\n{entry}\n"


def quota(words: str) -> str:
    """A virtual cluster with one quota, which is marked."""
    return one(f"    quota:\n      - {{{words}}} # <-")


INVALID = {
    "type": ("choice", "scheduler:\n  type: slurm # <-\nvirtual-clusters:\n  - {name: a}\n"),
    "training-operator": ("contradiction", "scheduler:\n  type: hived\n  training-operator: true # <-\n"),
    "no-type": ("missing", "scheduler: {topology: []} # <-\nvirtual-clusters:\n  - {name: a}\n"),
    "no-scheduler": ("missing", "virtual-clusters: # <-\n  - {name: a, quota: [{sku: a100, machines: 1}]}\n"),
    "empty-clusters": ("missing", "scheduler: {type: kueue}\nvirtual-clusters: [] # <-\n"),
    "clusters-mapping": ("type", "scheduler: {type: kueue}\nvirtual-clusters: # <-\n  a: {}\n"),
    "no-name": ("missing", f"{HEAD}  - quota: [{{sku: a100, machines: 1}}] # <-\n"),
    "name-upper": ("cluster-name", f"{HEAD}  - name: Research # <-\n"),
    "name-underscore": ("cluster-name", f"{HEAD}  - name: my_team # <-\n"),
    "name-long": ("cluster-name", f"{HEAD}  - name: {'a' * 41} # <-\n"),
    "name-dash": ("cluster-name", f"{HEAD}  - name: a- # <-\n"),
    "name-root": ("cluster-name", ("scheduler: {type: volcano}\nvirtual-clusters:\n"
                  "  - name: root # <-\n    pinned: [g1]\n")),
    "name-twice": ("twice", f"{HEAD}  - {{name: a, pinned: [g1]}}\n  - name: a # <-\n    pinned: [g2]\n"),
    "no-sku": ("missing", quota("machines: 1")),
    "unknown-sku": ("unknown-sku", quota("sku: a10, machines: 1")),
    "sku-without-workers": ("sku-without-workers", quota("sku: spare, machines: 1")),
    "sku-of-masters": ("sku-without-workers", quota("sku: master, cores: 1")),
    "sku-twice": ("twice", one("    quota:\n      - {sku: a100, machines: 1}\n      - {sku: a100, devices: 1} # <-")),
    "no-amount": ("missing", quota("sku: a100")),
    "two-amounts": ("contradiction", quota("sku: a100, machines: 1, devices: 8")),
    "three-amounts": ("contradiction", quota("sku: epyc, machines: 1, cores: 8, devices: 2")),
    "devices-of-none": ("quota-unit", quota("sku: epyc, devices: 8")),
    "cores-of-devices": ("quota-unit", quota("sku: a100, cores: 8")),
    "memory-with-devices": ("contradiction", quota("sku: a100, devices: 8, memory: 10Gi")),
    "memory-unit": ("quantity", quota("sku: epyc, cores: 8, memory: 10GB")),
    "memory-bytes": ("quantity", quota("sku: epyc, cores: 8, memory: 64")),
    "machines-zero": ("count", quota("sku: a100, machines: 0")),
    "devices-negative": ("count", quota("sku: a100, devices: -8")),
    "cores-half": ("number", quota("sku: epyc, cores: 0.5")),
    "lend-word": ("portion", quota("sku: a100, devices: 8, lend: some")),
    "lend-negative": ("portion", quota("sku: a100, devices: 8, lend: -1")),
    "lend-more": ("portion", quota("sku: a100, devices: 8, lend: 9")),
    "borrow-more": ("portion", quota("sku: a100, devices: 8, borrow: 25")),
    "borrow-half": ("portion", quota("sku: a100, devices: 8, borrow: 1.5")),
    "machines-too-many": ("over-quota", quota("sku: a100, machines: 4")),
    "devices-too-many": ("over-quota", quota("sku: a100, devices: 25")),
    "cores-too-many": ("over-quota", quota("sku: epyc, cores: 37")),
    "memory-too-much": ("over-quota", quota("sku: epyc, cores: 8, memory: 300Gi")),
    "sum-too-much": ("over-quota", (f"{HEAD}  - name: a\n    quota: [{{sku: a100, devices: 20}}]\n"
                     "  - name: b\n    quota:\n      - sku: a100\n        machines: 1 # <-\n"
                     "  - name: c\n    quota: [{sku: a100, devices: 1}]\n")),
    "pinned-is-not-left": ("over-quota", (f"{HEAD}  - name: a\n    quota:\n      - {{sku: a100, machines: 3}} # <-\n"
                           "  - {name: b, pinned: [g2]}\n")),
    "own-pin-is-beside": ("over-quota", one("    pinned: [c1]\n    quota:\n      - {sku: epyc, cores: 1} # <-")),
    "unknown-machine": ("unknown-machine", one("    pinned:\n      - g9 # <-")),
    "pinned-master": ("no-worker", one("    pinned:\n      - m1 # <-")),
    "pinned-twice": ("pinned-twice", f"{HEAD}  - {{name: a, pinned: [g1]}}\n  - name: b\n    pinned: [g2, g1] # <-\n"),
    "pinned-twice-in-one": ("pinned-twice", one("    pinned:\n      - g1\n      - g1 # <-")),
    "unknown-group": ("unknown-group", GROUPS + one("    pinned: [g1]\n    groups:\n      - vision # <-")),
    "group-of-no-site": ("unknown-group", one("    pinned: [g1]\n    groups: [vision] # <-")),
    "usual-above": ("priority", one("    pinned: [g1]\n    priorities: {usual: crit, highest: prod} # <-")),
    "priority-word": ("choice", one("    pinned: [g1]\n    priorities: {usual: high} # <-")),
    "level-twice": ("twice", VALID.replace(
        "    - {name: rack, label: rack}\n",
        "    - {name: zone, label: rack}\n    - {name: rack, label: rack} # <-\n")),
    "level-name-twice": ("twice", VALID.replace(
        "    - {name: rack, label: rack}\n",
        "    - {name: rack, label: rack}\n    - {name: rack, label: row} # <-\n")),
    "level-host": ("topology-host", VALID.replace("rack}", "kubernetes.io/hostname} # <-")),
    "level-host-name": ("topology-host", VALID.replace("name: rack, label: rack}",
                        "name: host, label: rack} # <-")),
    "level-label": ("label", VALID.replace("rack}", "example com} # <-")),
}  # fmt: skip


@pytest.mark.parametrize(("code", "text"), INVALID.values(), ids=INVALID)
def test_what_is_wrong_is_an_error_at_its_line(tmp_path: Path, code: str, text: str) -> None:
    assert_refused(tmp_path, text + (GROUPS if "groups: [Vision_1" in text else ""), code)


def test_there_are_enough_of_them() -> None:
    assert len(INVALID) >= 40


TOLD = {
    "unknown-key": ("unknown-key", quota("sku: a100, machines: 1, gpus: 8")),
    "no-quota": ("no-quota", f"{HEAD}  - name: a # <-\n"),
    "default-lends": ("no-effect", one("    quota:\n      - {sku: a100, machines: 1, lend: 4} # <-", "default")),
    "default-borrows": ("no-effect", one("    quota:\n      - {sku: a100, machines: 1, borrow: all} # <-", "default")),
    "default-topology": ("no-effect", ("scheduler:\n  type: default\n  topology: # <-\n"
                         "    - {name: rack, label: rack}\n"
                         "virtual-clusters:\n  - {name: a, pinned: [g1]}\n")),
    "hived-lends-none": ("no-effect", one("    quota:\n      - {sku: a100, machines: 1, lend: none} # <-", "hived")),
    "some-lack-the-label": ("topology-label", VALID.replace("label: rack}", "label: row} # <-")),
    "all-lack-the-label": ("topology-label", VALID.replace("label: rack}", "label: none} # <-")),
    "group-twice": ("twice", GROUPS + one("    pinned: [g1]\n    groups: [nlp, nlp] # <-")),
    "unknown-in-acls": ("unknown-cluster", one("    pinned: [g1]") + GROUPS.replace(
        "{groupname: nlp}", "{groupname: nlp, extension: {acls: {virtualClusters: [b]}}} # <-")),
    "hived-block": ("overruled", one("    pinned: [g1]") + "hivedscheduler:\n  config: | # <-\n"
                    "    physicalCluster: {physicalCells: [{cellType: unknown}]}\n    virtualClusters: {}\n"),
}  # fmt: skip


@pytest.mark.parametrize(("code", "text"), TOLD.values(), ids=TOLD)
def test_what_is_odd_is_a_warning_at_its_line(tmp_path: Path, code: str, text: str) -> None:
    problems = problems_of(tmp_path, text + (GROUPS if "groups: [Vision_1" in text else ""))
    assert lines(problems, "error") == set()
    assert lines(problems, "warning") == marked(text), problems
    assert f"site.{code}" in {one.code for one in problems}


def test_a_whole_site_is_valid(tmp_path: Path) -> None:
    assert problems_of(tmp_path, VALID + GROUPS) == ()


def test_what_only_absent_machines_could_give_is_a_warning(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    text = one("    quota:\n      - {sku: a100, machines: 3} # <-")
    problems = problems_of(tmp_path, text, layout=ABSENT)
    assert (lines(problems, "error"), lines(problems, "warning")) == (set(), marked(text))
    assert problems[0].message == snapshot


def test_more_than_all_machines_have_is_an_error_also_where_some_are_absent(tmp_path: Path) -> None:
    text = one("    quota:\n      - {sku: a100, machines: 4} # <-")
    problems = problems_of(tmp_path, text, layout=ABSENT)
    assert (lines(problems, "error"), lines(problems, "warning")) == (marked(text), set())


def test_an_absent_machine_may_be_pinned_with_a_warning(tmp_path: Path) -> None:
    text = one("    pinned:\n      - g3 # <-\n    quota:\n      - {sku: a100, machines: 2}")
    problems = problems_of(tmp_path, text, layout=ABSENT)
    assert [(one.code, one.severity, one.line) for one in problems] == [("site.absent-machine", "warning", 5)]


@pytest.mark.parametrize(
    ("enabled", "kind", "told"),
    [("true", "kueue", True), ("false", "hived", True), ("false", "kueue", False), ("true", "hived", False)],
)
def test_the_section_rules_over_openpais_switch(tmp_path: Path, enabled: str, kind: str, told: bool) -> None:
    config = f"{CONFIG}enable_hived_scheduler: {enabled}\n"
    problems = problems_of(tmp_path, one("    pinned: [g1]", kind), config=config)
    assert [(one.code, one.line) for one in problems] == ([("site.overruled", 1)] if told else [])


def test_a_machine_type_that_no_label_can_hold_is_an_error(tmp_path: Path) -> None:
    text = one("    pinned: [g1]")
    problems = problems_of(tmp_path, text, layout=LAYOUT.replace("a100", '"a 100"'))
    assert [(one.code, one.line) for one in problems] == [("site.sku-name", 1)]


def test_a_site_without_the_sections_has_no_problem(tmp_path: Path) -> None:
    acls = GROUPS.replace("{groupname: nlp}", "{groupname: nlp, extension: {acls: {virtualClusters: [b]}}}")
    assert problems_of(tmp_path, acls) == ()


def test_what_is_wrong_elsewhere_hides_none_of_it(tmp_path: Path) -> None:
    folder = write_site(
        tmp_path, layout=LAYOUT, config="user: admin\npod_cidr: x\n", services=quota("sku: x, machines: 1")
    )
    assert {one.code for one in read_site(folder).problems} >= {"site.unknown-sku", "site.cidr"}
