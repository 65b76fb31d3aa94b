"""The profile of a site: no secret is in it, and it is enough for jobs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from pai_install.app.job_submission import compile_unchecked
from pai_install.app.requested_job import JobOptions
from pai_install.jobs.read import read_job
from pai_install.profile.model import ClusterProfile
from pai_install.profile.project import profile_of
from pai_install.profile.publish import profile_object, published_profile
from pai_install.schedulers.last_applied import kept_object, kept_of
from pai_install.site.load import load_site
from pai_install.site.model import Site
from pai_install.site.use_limits import default_limits
from tests.unit.jobs.sites import GROUPS, STORAGES
from tests.unit.scheduling.test_read import VALID
from tests.unit.site.rules.scheduling.sites import LAYOUT
from tests.unit.site.sites import write_site

PLANTED = "planted-4711"
SECRETS = f"""\
  - name: share
    type: smb
    server: nas.example.com
    share-name: data
    username: {PLANTED}-account
    password: {PLANTED}-password
  - {{name: cloud, type: azureBlob, account-name: account, container-name: data, account-key: cGxhbnRlZC00NzExLWs=}}
registry:
  logins: [{{registry: registry.example.com, username: {PLANTED}-puller, password: {PLANTED}-token, groups: [nlp]}}]
"""
KEYS = (PLANTED, "cGxhbnRlZC00NzExLWs=")


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A site with secrets in each of its files."""
    groups = GROUPS.replace("[team]", "[team, share, cloud]")
    folder = write_site(tmp_path / "cluster", layout=LAYOUT, services=VALID + groups + STORAGES + SECRETS)
    (folder / "config.yaml").write_text(f"user: admin\npassword: {PLANTED}-login\n")
    return load_site(folder).site


def published(profile: ClusterProfile) -> ClusterProfile | None:
    """The profile as a program in the cluster reads it."""
    kept = json.loads(json.dumps(kept_object(profile.require_scheduling())))
    return published_profile(json.loads(json.dumps(profile_object(profile))), kept_of(kept))


def test_no_secret_of_the_site_is_in_it(site: Site) -> None:
    profile = profile_of(site)
    texts = (repr(profile), profile.model_dump_json(), yaml.safe_dump(profile_object(profile)))
    assert {grant.storage for grant in profile.grants} == {"team", "share", "cloud"}
    assert not [key for key in KEYS for text in texts if key in text]


def test_the_published_profile_is_the_site_s(site: Site) -> None:
    assert published(profile_of(site)) == profile_of(site)


def test_limits_of_a_profile_without_any_are_the_defaults(site: Site) -> None:
    """Such as one that an earlier version published."""
    profile = profile_of(site)
    older = profile.model_copy(update={"use_limits": {}})
    assert older.limits_of("any") == default_limits()


@pytest.mark.parametrize("data", [{}, {"profile.json": "{"}, {"profile.json": '{"groups": 3}'}, {"profile.json": 3}])
def test_a_damaged_object_is_no_profile(data: dict[str, object]) -> None:
    assert published_profile({"data": data}, None) is None
    assert published_profile(None, None) is None


def test_a_job_is_compiled_from_the_published_profile_as_from_the_site(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(
        """\
protocolVersion: 2
name: train
type: job
prerequisites: [{name: image, type: dockerimage, uri: example.com/train:1}]
taskRoles:
  worker:
    instances: 2
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 1000, gpu: 1}
    commands: [python train.py]
defaults: {virtualCluster: default}
"""
    )
    request = JobOptions(group="Vision_1", user="alice")
    reading = read_job(file)
    inside = published(profile_of(site))
    assert inside is not None
    assert compile_unchecked(inside, request, reading) == compile_unchecked(profile_of(site), request, reading)
