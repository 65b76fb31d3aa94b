"""`pai-install job template` and `job submit --template`, before a cluster in memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.cli.schema import SCHEMAS
from pai_install.cluster.client import ApiError
from pai_install.errors import ExitCode
from pai_install.kube.model import Ref
from pai_install.parts.example_templates import example_templates
from tests.unit.cli.stub_environment import World, run
from tests.unit.cli.test_job import folder, world

__all__ = ["folder", "world"]

FILE = """\
# Trains a small model
protocolVersion: 2
name: mnist   # as you like
type: job
prerequisites: [{type: dockerimage, name: image, uri: "example.com/train:1"}]
parameters:
  epochs: 10   # times
  rate: "0.1"
taskRoles:
  worker:
    instances: 1
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 1024, gpu: 1}
    commands: [python train.py --epochs <% $parameters.epochs %> --rate <% $parameters.rate %>]
"""
ITEMS = [
    {"name": "Couplet Training!", "protocol": FILE, "tags": ["nlp"], "categories": "AI couplet", "summary": "Poems"},
    {"name": "Couplet data", "type": "data", "protocol": "x"},
    {"name": "broken", "protocol": "protocolVersion: 2"},
    {"name": "中文", "protocol": FILE},
    {"protocol": 3},
    "no item",
]
GROUP = ("--group", "nlp", "--user", "alice")


def template(folder: str, *words: str) -> int:
    return run(["job", "template", *words, "--site", folder])


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "train.yaml"
    path.write_text(FILE)
    return str(path)


@pytest.fixture
def saved(folder: str, world: World, file: str, capsys: Any) -> str:
    """A site with a template of a group, and the examples."""
    world.api.apply(list(example_templates()))
    assert template(folder, "save", "train", file, *GROUP, "--tag", "torch,digits") == ExitCode.OK
    capsys.readouterr()
    return folder


def shown(capsys: Any, name: str) -> Any:
    data = json.loads(capsys.readouterr().out)
    jsonschema.validate(data, SCHEMAS[name]())
    return data


def test_list(saved: str, capsys: Any, snapshot: SnapshotAssertion) -> None:
    assert template(saved, "list") == ExitCode.OK
    assert capsys.readouterr().out == snapshot
    assert template(saved, "list", "--search", "DIGITS small", "--format", "json") == ExitCode.OK
    (one,) = shown(capsys, "job-templates")["templates"]
    assert (one["name"], one["namespace"], one["owner"]) == ("train", "nlp", "alice")
    assert template(saved, "list", "--group", "Vision_1", "--format", "json") == ExitCode.OK
    found = shown(capsys, "job-templates")["templates"]
    assert {one["published"] for one in found} == {True}
    # the site has no storage `data`, no Volcano, and no training operator
    assert {"cpu-only-job", "openpai-single"} <= {one["name"] for one in found}
    assert {"openpai-ddp", "tensorflow-volcano", "pytorch-pytorchjob"}.isdisjoint(one["name"] for one in found)


def test_show(saved: str, capsys: Any, snapshot: SnapshotAssertion) -> None:
    assert template(saved, "show", "train", "--group", "nlp") == ExitCode.OK
    assert capsys.readouterr().out == snapshot
    assert template(saved, "show", "train", "--group", "nlp", "--format", "json") == ExitCode.OK
    data = shown(capsys, "job-template")
    assert data["content"] == FILE
    assert data["parameters"] == [{"name": "epochs", "value": "10"}, {"name": "rate", "value": "0.1"}]
    assert template(saved, "show", "train") == ExitCode.USAGE
    assert template(saved, "show", "train", "--group", "Vision_1") == ExitCode.USAGE
    assert template(saved, "show", "../kube-root-ca.crt", "--group", "nlp") == ExitCode.USAGE


def test_submit_with_values(saved: str, world: World, capsys: Any) -> None:
    words = ["--template", "train", "--set", "epochs=20", "--set", "rate=a: b # c", "--name", "second"]
    assert run(["job", "submit", *words, "--site", saved, *GROUP]) == ExitCode.OK
    made = world.api.objects[Ref("jobset", "second", "nlp")]
    assert "--epochs 20 --rate a: b # c" in json.dumps(made)
    capsys.readouterr()
    assert run(["job", "file", "second", "--site", saved]) == ExitCode.OK
    wanted = FILE.replace("10   #", '"20"   #').replace('"0.1"', '"a: b # c"').replace("mnist   #", "second   #")
    assert capsys.readouterr().out == wanted


def test_a_file_takes_values_as_well(folder: str, world: World, file: str) -> None:
    assert run(["job", "submit", file, "--set", "epochs=3", "--site", folder, *GROUP]) == ExitCode.OK
    assert "--epochs 3 " in json.dumps(world.api.objects[Ref("jobset", "mnist", "nlp")])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--template", "train", "--set", "epoch=1"], "did you mean epochs?"),
        (["--template", "train", "--set", "epochs"], "is not KEY=VALUE"),
        (["--template", "train", "--set", "epochs=\x1b[2J"], "control characters"),
        (["--template", "trian"], "code: unknown-template"),
        (["--template", "hidden"], "code: template-without-secrets"),
        (["--template", "cpu-only-job", "--set", "a=1"], "the file has no parameters"),
        (["--template", "cpu-only-job", "--name", "a"], "write generateName"),
        ([], "name a FILE or --template"),
    ],
)
def test_what_is_not_submitted(
    saved: str, world: World, capsys: Any, words: list[str], says: str, tmp_path: Path
) -> None:
    path = tmp_path / "hidden.yaml"
    path.write_text(f"{FILE}secrets: {{token: s3cret-word}}\n")
    assert template(saved, "save", "hidden", str(path), *GROUP) == ExitCode.OK
    assert run(["job", "submit", *words, "--site", saved, *GROUP]) == ExitCode.USAGE
    assert says in capsys.readouterr().err
    assert not [ref for ref in world.api.objects if ref.kind in {"jobset", "job"}]


def test_a_job_of_the_cluster_becomes_a_template(saved: str, world: World, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "secret.yaml"
    path.write_text(f"{FILE}secrets: {{token: s3cret-word}}\n")
    assert run(["job", "submit", str(path), "--site", saved, *GROUP]) == ExitCode.OK
    assert template(saved, "save", "again", "--job", "mnist", *GROUP) == ExitCode.OK
    assert template(saved, "save", "direct", str(path), *GROUP) == ExitCode.OK
    for name in ("again", "direct"):
        kept = world.api.objects[Ref("configmap", f"template.{name}", "nlp")]
        assert "token: '******'" in kept["data"]["job"] or "token: ******" in kept["data"]["job"]
        assert "s3cret-word" not in json.dumps(kept)


def test_only_the_owner_replaces_a_template(saved: str, world: World, file: str) -> None:
    others = ("--group", "nlp", "--user", "bob")
    assert template(saved, "save", "train", file, *others) == ExitCode.USAGE
    assert template(saved, "save", "train", file, *GROUP, "--description", "other") == ExitCode.OK
    assert (
        world.api.objects[Ref("configmap", "template.train", "nlp")]["metadata"]["annotations"][
            "pai-install/template-description"
        ]
        == "other"
    )
    world.api.rejects = ApiError("kubectl create failed", reason="Forbidden")
    assert template(saved, "save", "more", file, *others) == ExitCode.STEP_FAILED
    assert Ref("configmap", "template.more", "nlp") not in world.api.objects


@pytest.mark.parametrize("name", ["Train", "a_b", "a-", "a" * 54, "a/b", ""])
def test_names(saved: str, file: str, name: str) -> None:
    assert template(saved, "save", name, file, *GROUP) == ExitCode.SITE_INVALID


def test_a_file_with_errors_is_no_template(saved: str, world: World, tmp_path: Path, capsys: Any) -> None:
    for number, text in enumerate(("a: [", "x: 1", FILE + "# " + "x" * 110_000)):
        path = tmp_path / f"{number}.yaml"
        path.write_text(text)
        assert template(saved, "save", "wrong", str(path), *GROUP) == ExitCode.SITE_INVALID
    assert template(saved, "save", "wrong", *GROUP) == ExitCode.USAGE
    assert Ref("configmap", "template.wrong", "nlp") not in world.api.objects


def test_publish_and_remove(saved: str, world: World, capsys: Any) -> None:
    assert template(saved, "publish", "train") == ExitCode.USAGE
    assert template(saved, "publish", "cpu-only-job", "--group", "nlp") == ExitCode.USAGE
    assert template(saved, "publish", "train", "--group", "nlp") == ExitCode.OK
    assert Ref("configmap", "template.train", "pai-templates") in world.api.objects
    assert template(saved, "show", "train", "--group", "Vision_1") == ExitCode.OK
    assert template(saved, "remove", "train", "--group", "nlp") == ExitCode.OK
    assert template(saved, "remove", "train", "--group", "nlp") == ExitCode.USAGE
    assert template(saved, "remove", "train") == ExitCode.OK
    assert template(saved, "remove", "cpu-only-job") == ExitCode.USAGE
    assert Ref("configmap", "template.cpu-only-job", "pai-templates") in world.api.objects


def test_no_template_replaces_an_example(saved: str, world: World, file: str) -> None:
    assert template(saved, "save", "cpu-only-job", file, *GROUP) == ExitCode.OK
    assert template(saved, "publish", "cpu-only-job", "--group", "nlp") == ExitCode.USAGE
    kept = world.api.objects[Ref("configmap", "template.cpu-only-job", "pai-templates")]
    assert kept["metadata"]["labels"]["pai-install/template"] == "example"


def test_import(saved: str, tmp_path: Path, file: str, world: World, capsys: Any, snapshot: SnapshotAssertion) -> None:
    items = tmp_path / "items.json"
    items.write_text(json.dumps(ITEMS))
    assert template(saved, "import", str(items), file, *GROUP) == ExitCode.SITE_INVALID
    assert capsys.readouterr().out == snapshot
    kept = world.api.objects[Ref("configmap", "template.couplet-training", "nlp")]
    notes = {"pai-install/template-tags": "AI couplet\nnlp", "pai-install/template-description": "Poems"}
    assert (kept["metadata"]["annotations"], kept["data"]) == (notes, {"job": FILE})
    assert template(saved, "import", file, *GROUP, "--format", "json") == ExitCode.OK
    assert shown(capsys, "job-template-import")["items"] == [{"name": "train", "title": "train", "problem": ""}]


@pytest.mark.parametrize(
    "content", [b"\xff\xfe", b"[" * 100_000, b"{}", b"[]", b'{"items": 3}', b"null", b'[{"name": {}}]', b"\x00"]
)
def test_any_file_is_reported(saved: str, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "any.json"
    path.write_bytes(content)
    assert template(saved, "import", str(path), *GROUP) in {ExitCode.OK, ExitCode.SITE_INVALID}


def test_strange_templates_of_others_stop_nothing(saved: str, world: World, capsys: Any) -> None:
    strange: dict[str, dict[str, Any]] = {
        "template.evil": {"job": "\x1b[2J", "description": "\x1b]0;x\x07<b>", "tags": "\x1b[1m"},
        "template.empty": {},
        "template.Wrong": {"job": "x"},
        "other": {"job": "x"},
        "template.number": {"job": 3},
    }
    for name, data in strange.items():
        notes = {f"pai-install/template-{key}": text for key, text in data.items()}
        labels = {"pai-install/template": "example"}
        metadata = {"name": name, "namespace": "nlp", "labels": labels, "annotations": notes}
        world.api.apply([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}])
    assert template(saved, "list") == ExitCode.OK
    output = capsys.readouterr().out
    assert "evil" in output
    assert "\x1b" not in output
    assert template(saved, "show", "evil", "--group", "nlp") == ExitCode.OK
    assert "\x1b" not in capsys.readouterr().out
    assert run(["job", "submit", "--template", "evil", "--set", "a=b", "--site", saved, *GROUP]) != ExitCode.OK


def test_code_goes_with_the_job(folder: str, world: World, file: str, tmp_path: Path, capsys: Any) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text("print('trained')")
    assert run(["job", "submit", file, "--code", str(code), "--site", folder, *GROUP]) == ExitCode.OK
    made = world.api.objects[Ref("jobset", "mnist", "nlp")]
    assert made["metadata"]["annotations"]["pai-install/code"].startswith("sha256:")
    text = json.dumps(made)
    assert "tar -xzf" in text
    assert '"configMap": {"name": "mnist-code-part-00"}' in text
    kept = world.api.objects[Ref("configmap", "mnist-code-part-00", "nlp")]
    assert kept["metadata"]["ownerReferences"][0]["name"] == "mnist"
    native = tmp_path / "native.yaml"
    native.write_text((Path(__file__).parents[3] / "examples/cpu-only/job.yaml").read_text())
    assert run(["job", "submit", str(native), "--code", str(code), "--site", folder, *GROUP]) == ExitCode.USAGE
    assert run(["job", "submit", file, "--code", str(code / "train.py"), "--site", folder, *GROUP]) == ExitCode.USAGE
