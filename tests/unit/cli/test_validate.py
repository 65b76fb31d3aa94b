"""`pai-install validate`: text, JSON, files with marks, exit status."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.cli.main import run

LAYOUT = """\
machine-sku:
  gpu:
    computing-device: {type: nvidia.com/gpu, model: A100, count: 8}
    mem: 1Ti
    cpu: {vcore: 128}
machine-list:
  - hostname: box
    hostip: 10.0.0.1
    machine-type: gpu
    pai-master: "true"
    pai-worker: "true"
"""
CONFIG = """\
user: admin
password: pl4nted-s3cret
docker_registry_username: x
docker_registry_password: |
  pl4nted-s3cret
"""


def site(directory: Path, layout: str = LAYOUT, config: str = CONFIG) -> str:
    (directory / "layout.yaml").write_text(layout)
    (directory / "config.yaml").write_text(config)
    return str(directory)


def validate(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = run(["validate", *words])
    output = capsys.readouterr()
    assert output.err == ""
    assert "pl4nted" not in output.out
    return code, output.out


def validate_json(capsys: pytest.CaptureFixture[str], directory: str) -> tuple[int, dict[str, Any]]:
    code, text = validate(capsys, "--site", directory, "--format", "json")
    report = json.loads(text)
    assert isinstance(report, dict)
    return code, report


def test_a_valid_site_shows_what_it_means(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    code, text = validate(capsys, "--site", site(tmp_path))
    assert code == 0
    assert text == snapshot
    assert "Kubernetes          1.36 (default)" in text
    assert text.endswith("the site is valid: 0 errors, 2 warnings\n")


def test_what_is_written_is_not_called_a_default(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    config = CONFIG + "kubernetes_version: 1.35\npod_cidr: 10.64.0.0/12\n"
    _, text = validate(capsys, "--site", site(tmp_path, config=config))
    assert "Kubernetes          1.35\n" in text
    assert text == snapshot


def test_errors_are_listed_with_place_and_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    directory = site(tmp_path, layout=LAYOUT.replace("10.0.0.1", "999.9.9.9"))
    code, text = validate(capsys, "--site", directory)
    assert code == 3
    assert text.splitlines()[:2] == snapshot
    assert text == snapshot


def test_json_has_every_field(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, report = validate_json(capsys, site(tmp_path, layout=LAYOUT.replace("1Ti", "1TB")))
    assert code == 3
    assert (report["schema_version"], report["ok"], report["site"]) == (1, False, None)
    assert report["problems"][0] == {
        "file": f"{tmp_path}/layout.yaml",
        "line": 4,
        "column": 5,
        "path": "machine-sku.gpu.mem",
        "severity": "error",
        "code": "site.quantity",
        "message": "1TB has the unit TB, which Kubernetes does not know",
        "remedy": "write 1T (powers of 1000) or 1Ti (powers of 1024)",
    }


def test_json_of_a_valid_site_describes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, report = validate_json(capsys, site(tmp_path))
    assert (code, report["ok"]) == (0, True)
    described = report["site"]
    assert described["machines"][0]["roles"] == ["control-plane", "worker"]
    assert described["machines"][0]["devices"] == {"nvidia.com/gpu": 8}
    assert described["skus"]["gpu"]["mem_bytes"] == 2**40
    assert described["settings"]["kubernetes_version"] == {"value": "1.36", "default": True}
    assert described["settings"]["user"] == {"value": "admin", "default": False}
    assert described["settings"]["password"] == {"value": "********", "default": False}


def test_annotate_marks_the_lines_and_hides_secrets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    directory = site(tmp_path, layout=LAYOUT.replace("10.0.0.1", "10.0.0"))
    code, text = validate(capsys, "--site", directory, "--annotate")
    assert code == 3
    lines = text.splitlines()
    at = lines.index(" 8 |     hostip: 10.0.0")
    assert lines[at + 1] == snapshot
    assert lines[at + 2] == snapshot
    assert "2 | password: ********" in lines


@pytest.mark.parametrize("words", [(), ("--format", "json"), ("--annotate",)])
@pytest.mark.parametrize(
    "line", ["https_proxy: alice:pl4nted@host:3128", "http_proxy: 'alice:my pl4nted@host'", "pasword: pl4nted"]
)
def test_a_slip_does_not_give_a_secret_away(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, words: tuple[str, ...]
) -> None:
    code, _ = validate(capsys, "--site", site(tmp_path, config=f"{CONFIG}{line}\n"), *words)
    assert code == 3


@pytest.mark.parametrize(
    "content", ["", "- 1\n", "a: [\n", "a:\n\tb: 1\n", '"\\ud800": 1\n', "a: \x1b[31m\n", "password: [pl4nted\n"]
)
def test_annotate_takes_any_file(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str) -> None:
    code, text = validate(capsys, "--site", site(tmp_path, config=content), "--annotate")
    assert code == 3
    assert "\x1b" not in text
    assert "error: " in text


def test_a_folder_without_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = validate(capsys, "--site", str(tmp_path / "nowhere"), "--annotate")
    assert code == 3
    assert "does not exist" in text


def test_the_current_folder_and_the_environment_name_the_site(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    site(tmp_path)
    monkeypatch.delenv("PAI_SITE", raising=False)
    monkeypatch.chdir(tmp_path)
    assert validate(capsys)[0] == 0
    monkeypatch.chdir("/")
    monkeypatch.setenv("PAI_SITE", str(tmp_path))
    assert validate(capsys)[0] == 0


def test_neither_ansible_nor_rich_is_loaded_for_it(tmp_path: Path) -> None:
    from pai_install.system.proc import run as run_process  # noqa: PLC0415 - only this test needs a process

    code = (
        "import sys; from pai_install.cli.main import run; "
        f"code = run(['validate', '--site', {site(tmp_path)!r}]); "
        "print(sorted({'ansible', 'ansible_runner', 'rich', 'kubernetes'} & set(sys.modules)), code)"
    )
    done = run_process([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)})
    assert done.stdout.splitlines()[-1] == "[] 0"


def test_marks_are_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["validate", "--site", site(tmp_path), "--annotate", "--format", "json"]) == 2
    out, err = capsys.readouterr()
    assert json.loads(out)["ok"] is False
    assert "--annotate prints text" in err
