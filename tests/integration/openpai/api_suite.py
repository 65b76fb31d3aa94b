"""OpenPAI's own API test, the suite `api-test` of its JavaScript SDK, which is no part of this repository.

PAI_API_TEST names a folder with its sources, and with its packages from npm: docs/testing.md.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.integration.openpai.conftest import Console
from tests.npm import node

SOURCES = os.environ.get("PAI_API_TEST", "")
NEEDS_SUITE = pytest.mark.skipif(not SOURCES, reason="PAI_API_TEST names no folder with OpenPAI's API test")
# ts-node compiles the whole SDK first, and a test has 20 s
_SECONDS = 600
_TYPESCRIPT = ("-r", "ts-node/register", "-r", "tsconfig-paths/register")
_SWAGGER, _CASES = "src/api/v2/swagger.yaml", ".tests/apiTestCase.json"
# the schema of a job file, which the suite would read from a web address
_REMOTE = '$ref: "https://raw.githubusercontent.com/microsoft/openpai-protocol/'


@dataclass(frozen=True)
class SuiteResult:
    """Full titles of all cases, and of those that passed. errors: what did not pass, as mocha shows it."""

    cases: tuple[str, ...]
    passed: frozenset[str]
    errors: Mapping[str, str]


def run_suite(console: Console, folder: Path, user: str, last: Sequence[str]) -> SuiteResult:
    """Runs a copy of the suite as an administrator of the console.

    last: titles of cases that run after all others. A failed preparation leaves a user, which later cases make again.
    """
    sources = Path(SOURCES)
    shutil.copytree(sources, folder, ignore=shutil.ignore_patterns("node_modules", ".git", "lib"))
    (folder / "node_modules").symlink_to(sources / "node_modules")
    swagger = folder / _SWAGGER
    text = swagger.read_text().splitlines()
    remote = [number for number, line in enumerate(text) if line.strip().startswith(_REMOTE)]
    assert len(remote) == 1, "another version of the suite"
    text[remote[0]] = text[remote[0]].partition("$ref")[0] + "type: object"
    swagger.write_text("\n".join(text) + "\n")
    address = f"{console.url.removeprefix('https://')}/rest-server"
    cluster = {"alias": "here", "rest_server_uri": address, "https": True, "username": user}
    cluster |= {"password": console.password(user), "token": console.token(user)}
    (folder / ".tests/clusters.json").write_text(json.dumps([cluster]))
    made = _run(console, folder, [*_TYPESCRIPT, "tests/common/apiTestCaseGenerator.ts", "--", _SWAGGER, _CASES])
    assert "Success." in made, made
    words = ["node_modules/mocha/bin/mocha", *_TYPESCRIPT, "tests/api_tests/**/*.spec.ts", "-t", "20000"]
    chosen = ["--grep", "|".join(map(re.escape, last)), "--reporter", "json"]
    reports = [_report(_run(console, folder, [*words, *chosen, *more])) for more in (["--invert"], [])]
    passed = (one["fullTitle"] for report in reports for one in report["passes"])
    errors = {one["fullTitle"]: str(one["err"].get("message")) for report in reports for one in report["failures"]}
    return SuiteResult(_cases(folder), frozenset(passed), errors)


def _run(console: Console, folder: Path, words: list[str]) -> str:
    """What a program writes, whatever its end is."""
    given = {"HOME": str(folder), "NODE_EXTRA_CA_CERTS": str(console.authority), "PATH": os.environ["PATH"]}
    run = subprocess.run(
        [str(node()), *words], env=given, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    return run.stdout if run.stdout.strip() else run.stderr


def _cases(folder: Path) -> tuple[str, ...]:
    """A case that a failed preparation kept from running is in no report of mocha."""
    found = json.loads((folder / _CASES).read_text())["tests"]
    return tuple(
        f"{case['description']} {test.get('description') or case['description']}"
        for case in found
        for test in case["tests"]
    )


def _report(output: str) -> dict[str, Any]:
    # the suite prints answers that its schemas refuse, before the report
    found: dict[str, Any] = json.loads(output[output.index('{\n  "stats"') :])
    return found
