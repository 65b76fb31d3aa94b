"""Thresholds: where a number comes from, and that every one that a check names exists."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path
from typing import Any

import pytest

from pai_install.checks.check import Check
from pai_install.checks.limits import Limit
from pai_install.errors import PaiError
from pai_install.health.checkup import site_limits
from pai_install.health.judge import rules
from tests.unit.health.machines import LIMITS


def test_sku_beats_site_beats_product_beats_default() -> None:
    limits = LIMITS.overridden({"thresholds": {"temperature-margin": 7}, "skus": {"a": {"temperature-margin": 9}}})
    assert limits.number("temperature-margin", sku="a") == 9
    assert limits.number("temperature-margin", sku="b") == 7
    assert LIMITS.number("temperature-margin") == 5
    assert LIMITS.get("nvlink-count", product="NVIDIA H100 80GB HBM3") == Limit(18, "NHV")
    assert (
        LIMITS.overridden({"skus": {"a": {"nvlink-count": 4}}}).number("nvlink-count", sku="a", product="H100 SXM") == 4
    )
    assert LIMITS.get("nvlink-count", product="NVIDIA L40S") is None
    assert LIMITS.get("nvlink-count") is None


@pytest.mark.parametrize(
    ("product", "links", "speed"),
    [
        ("Tesla V100-SXM2-32GB", 6, 25.781),
        ("NVIDIA A100-SXM4-80GB", 12, 25),
        ("NVIDIA H100 80GB HBM3", 18, 26.562),
        ("NVIDIA H200", 18, 26.562),
        ("NVIDIA B200", 18, 53.125),
        ("NVIDIA GB300", 18, 53.125),
    ],
)
def test_links_of_known_products(product: str, links: int, speed: float) -> None:
    assert LIMITS.number("nvlink-count", product=product) == links
    assert LIMITS.number("nvlink-speed", product=product) == speed


@pytest.mark.parametrize("product", ["NVIDIA GH200 480GB", "NVIDIA H200 NVL"])
@pytest.mark.parametrize("limit", ["ib-gigabits", "nvlink-count", "nvlink-speed", "nccl-busbw"])
def test_boards_of_h200_are_not_its_relatives(limit: str, product: str) -> None:
    """Neither stands on a board with eight of them and a network card each."""
    assert LIMITS.get(limit, product=product) is None
    assert LIMITS.get(limit, product="NVIDIA H200") is not None


@pytest.mark.parametrize(
    ("site", "words"),
    [
        ({"thresholds": {"no-such": 1}}, "no health threshold 'no-such'"),
        ({"skus": {"a": {"no-such": 1}}}, "skus.a"),
        ({"thresholds": {"temperature-margin": "hot"}}, "not a number"),
        ({"thresholds": {"temperature-margin": True}}, "not a number"),
    ],
)
def test_wrong_overrides_are_named(site: dict[str, Any], words: str) -> None:
    with pytest.raises(PaiError, match=words):
        LIMITS.overridden(site)


def test_every_threshold_that_the_code_or_a_text_names_exists_and_is_used() -> None:
    known = set(LIMITS.defaults) | {name for _, layer in LIMITS.products for name in layer}
    folder = Path(rules.__file__).parent
    code = "".join(path.read_text() for path in [*folder.glob("*.py"), folder.parent / "view.py"])
    named = set(re.findall(r'limit\(\s*"([a-z0-9-]+)"', code)) | set(re.findall(r'number\("([a-z0-9-]+)"', code))
    assert named <= known
    assert {name for name in known if not name.startswith("pcie-replays-per-lane") and f'"{name}"' not in code} == set()


def words_in(function: ast.FunctionDef, tree: ast.Module) -> set[str]:
    """Every text in a function, its helpers and the constants that it names; of a composed text its beginning."""
    definitions: dict[str, ast.AST] = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            definitions[statement.targets[0].id] = statement.value
    todo: list[ast.AST] = list(function.body)
    done, words = {function.name}, set()
    while todo:
        for node in ast.walk(todo.pop()):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                words.add(node.value)
            elif isinstance(node, ast.Attribute):
                words |= {"recent": {"xid-window-hours"}, "young": {"boot-seconds"}}.get(node.attr, set())
            elif isinstance(node, ast.Name) and node.id in definitions and node.id not in done:
                done.add(node.id)
                todo.append(definitions[node.id])
    return words


@pytest.mark.parametrize("path", sorted(Path(rules.__file__).parent.glob("[a-z]*.py")), ids=lambda path: path.stem)
def test_a_check_declares_the_thresholds_that_it_compares_with(path: Path) -> None:
    """`explain` and the documentation believe the declaration."""
    known = {*LIMITS.defaults, *(name for _, layer in LIMITS.products for name in layer)}
    module = importlib.import_module(f"{rules.__name__}.{path.stem}")
    tree = ast.parse(path.read_text())
    for node in tree.body:
        check = getattr(module, node.name, None) if isinstance(node, ast.FunctionDef) else None
        if isinstance(node, ast.FunctionDef) and isinstance(check, Check):
            words = words_in(node, tree)
            composed = {name for name in known for word in words if word.endswith("-gen") and name.startswith(word)}
            merged = {"xid-merge-seconds"} if check.id == "gpu-xid" else set()  # the view merges Xids, for all checks
            assert set(check.limits) == (known & words) | composed | merged, check.id


def test_every_threshold_says_whose_it_is() -> None:
    assert all(limit.source for limit in LIMITS.defaults.values())


def test_site_file(tmp_path: Path) -> None:
    assert site_limits(LIMITS, tmp_path) is LIMITS
    (tmp_path / "health.yml").write_text("skus:\n  dgx: {temperature-margin: 8}\n")
    assert site_limits(LIMITS, tmp_path).number("temperature-margin", sku="dgx") == 8
    (tmp_path / "health.yml").write_text("")
    assert site_limits(LIMITS, tmp_path).number("temperature-margin") == 5


@pytest.mark.parametrize(
    ("text", "words"), [("a: [", "not YAML"), ("- 1\n", "unknown sections"), ("tresholds: {}\n", "tresholds")]
)
def test_wrong_site_file_is_named(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "health.yml").write_text(text)
    with pytest.raises(PaiError, match=words):
        site_limits(LIMITS, tmp_path)
