"""Every error has a code: tests, scripts, and people recognize an error by it, whatever its message says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "installer" / "pai_install"
# classes of errors whose constructor gives the code
WITH_A_CODE = {
    *("SiteInvalid", "ApiError", "NoClusterError", "OverdueError", "FailedError", "MachineError", "RejectedJob"),
}
CLASSES = {"PaiError", "CopyError", "_TooLongError"}
FORM = re.compile(r"[a-z0-9]+(-[a-z0-9]+)+|usage")


def errors() -> Iterator[tuple[str, ast.expr | None]]:
    """Place and code of each error that the package makes."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in CLASSES:
                place = f"{path.relative_to(PACKAGE).as_posix()}:{node.lineno}"
                yield place, next((word.value for word in node.keywords if word.arg == "code"), None)


def test_every_error_has_a_code() -> None:
    assert [place for place, code in errors() if code is None] == []


def test_codes_are_kebab_case() -> None:
    codes = [(place, code.value) for place, code in errors() if isinstance(code, ast.Constant)]
    assert [(place, code) for place, code in codes if not FORM.fullmatch(str(code))] == []


def test_the_classes_of_errors_are_known() -> None:
    named = {
        node.name
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and any(getattr(base, "id", "") == "PaiError" for base in node.bases)
    }
    assert named | {"PaiError"} == WITH_A_CODE | CLASSES
