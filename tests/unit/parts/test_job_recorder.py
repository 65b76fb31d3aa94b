"""Where the recorder of jobs runs, what it is told, and what it may do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from pai_install.agents.job_recorder import settings
from pai_install.components.model import ComponentSet
from pai_install.parts.job_recorder import has_recorder
from pai_install.parts.registry import make_context, part_named
from pai_install.scheduling.job_kinds import KINDS
from pai_install.site import Site
from pai_install.users.kinds import kinds_at
from pai_install.users.recorder import recorded_kinds, recorder_objects
from tests.addons import ROOT
from tests.unit.plan.conftest import CONFIG

MakeSite = Callable[..., Site]
GROUPS = "authentication: {group-manager: {grouplist: [{groupname: Vision_1}, {groupname: nlp}]}}\n"
KUEUE = "scheduler: {type: kueue}\nvirtual-clusters: [{name: default, share: rest, groups: [nlp]}]\n"


@pytest.mark.parametrize(
    ("services", "wanted"),
    [("", False), (GROUPS, False), (GROUPS + KUEUE, True), (f"{GROUPS}{KUEUE}jobs: {{keep-days: 0}}\n", False)],
)
def test_which_sites_have_one(make_site: MakeSite, components: ComponentSet, services: str, wanted: bool) -> None:
    site = make_site(config=CONFIG, services=services)
    context = make_context(site, components, Path("/s"))
    assert has_recorder(site) == wanted
    for name in ("job_recorder", "addon.job_recorder"):
        part = part_named(name)
        assert part.applies(site, context.leader)
        assert (part.variables(context, context.leader) is not None) == wanted
    assert not part_named("job_recorder").applies(site, next(it for it in site.machines if not it.control_plane))


def test_what_the_program_is_told_is_what_it_reads(
    make_site: MakeSite, components: ComponentSet, tmp_path: Path
) -> None:
    site = make_site(config=CONFIG, services=f"{GROUPS}{KUEUE}jobs: {{keep-days: 3, log-kib: 2}}\n")
    context = make_context(site, components, Path("/s"))
    made = part_named("job_recorder").variables(context, context.leader)
    assert made is not None
    told = {name.removeprefix("job_recorder_"): value for name, value in made.variables().items()}
    written = yaml.safe_load((ROOT / "roles/job_recorder/vars/main.yml").read_text())["__job_recorder_settings"]
    assert set(written) == set(told)
    (tmp_path / "settings").write_text(json.dumps(told))
    found = settings.read(tmp_path / "settings")
    assert found.rules.namespaces == {"vision-1", "nlp"}
    assert (found.rules.keep_days, found.rules.most, found.rules.log_bytes) == (3, 500, 2048)
    assert "jobset.x-k8s.io/jobsets" in found.kinds
    assert found.rules.kinds == {*found.kinds, "pods"}


@pytest.mark.parametrize("scheduler", ["kueue", "volcano", "default", "hived"])
def test_it_watches_what_users_may_make(scheduler: str) -> None:
    watched = set(recorded_kinds(scheduler))  # type: ignore[arg-type]
    assert {f"{kind.group}/{kind.resource}" for kind in kinds_at(scheduler)} <= watched  # type: ignore[arg-type]
    assert watched <= {f"{kind.group}/{kind.resource}" for kind in KINDS}


def test_it_writes_in_groups_alone_and_reads_no_secrets() -> None:
    made = list(recorder_objects("kueue", ["vision", "nlp"]))
    written = [one for one in made if one["kind"] == "RoleBinding" and one["roleRef"]["name"].endswith("-records")]
    assert [one["metadata"]["namespace"] for one in written] == ["vision", "nlp"]
    (everywhere,) = [one for one in made if one["kind"] == "ClusterRoleBinding"]
    (role,) = [one for one in made if one["metadata"]["name"] == everywhere["roleRef"]["name"] and "rules" in one][:1]
    verbs = {kind: set(rule["verbs"]) for rule in role["rules"] for kind in rule["resources"]}
    assert verbs.pop("nodes") == {"get"}
    assert set(map(frozenset, verbs.values())) == {frozenset({"list", "watch"})}
    assert "secrets" not in str(made)
