"""`pai-install job` from argv to exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
from syrupy.assertion import SnapshotAssertion

from pai_install.cli.main import run
from pai_install.cli.schema import SCHEMAS
from pai_install.errors import ExitCode
from tests.unit.jobs.sites import GROUPS, STORAGES
from tests.unit.jobs.test_read import FILES, V2
from tests.unit.scheduling.test_read import VALID
from tests.unit.site.rules.scheduling.sites import LAYOUT
from tests.unit.site.sites import write_site


def site(folder: Path) -> str:
    """The site's folder."""
    return str(write_site(folder / "cluster", layout=LAYOUT, services=VALID + GROUPS + STORAGES))


def test_what_a_job_means(tmp_path: Path, capsys: Any, snapshot: SnapshotAssertion) -> None:
    assert run(["job", "validate", "--site", str(tmp_path), str(FILES / "full-v2.yaml")]) == ExitCode.OK
    shown = capsys.readouterr()
    assert shown.err == snapshot
    assert shown.out.replace(f"{FILES}/", "") == snapshot
    assert "    PAI_HOST_IP_worker_INDEX\n" in shown.out
    assert "hunter2" not in shown.out + shown.err


def test_several_files_and_one_is_wrong(tmp_path: Path, capsys: Any, snapshot: SnapshotAssertion) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(V2.replace("virtualCluster: default", "virtualCluster: research"))
    files = [str(FILES / "volcano.yaml"), str(FILES / "ps-worker-v1.json"), str(wrong)]
    assert run(["job", "validate", "--site", site(tmp_path), "--group", "nlp", *files]) == ExitCode.SITE_INVALID
    out = capsys.readouterr().out
    assert out.replace(f"{FILES}/", "") == snapshot


def test_json_is_as_its_schema_says(tmp_path: Path, capsys: Any) -> None:
    files = [str(path) for path in sorted(FILES.iterdir())]
    run(["job", "validate", "--site", site(tmp_path), "--format", "json", *files, str(tmp_path / "missing")])
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, SCHEMAS["job-validate"]())
    assert [one["ok"] for one in found["files"]] == [False, True, True, False, False]
    assert not found["ok"]


def test_a_group_that_is_none(tmp_path: Path, capsys: Any) -> None:
    words = ["job", "validate", "--site", site(tmp_path), "--group", "vison_1", str(FILES / "full-v2.yaml")]
    assert run(words) == ExitCode.USAGE
    assert "code: unknown-group" in capsys.readouterr().err
