"""Every error has a code: tests, scripts, and people recognize an error by it, whatever its message says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.prose import literals

PACKAGE = Path(__file__).parents[2] / "installer" / "pai_install"
PLAYBOOKS = PACKAGE.parents[1] / "playbooks"
# classes of errors whose constructor gives the code
WITH_A_CODE = {
    *("SiteInvalid", "ApiError", "NoClusterError", "OverdueError", "FailedError", "MachineError", "RejectedJob"),
}
CLASSES = {"PaiError", "CopyError", "_TooLongError"}
FORM = re.compile(r"[a-z0-9]+(-[a-z0-9]+)+|usage")
# an X is a value: an error that passes on the message of another begins with its object
MESSAGE = re.compile(r"cannot ([a-z]+(:| \S)|X).*|X(: X|, and rejects the login)", re.DOTALL)
REMEDIES = frozenset(
    (
        *("add", "allow", "change", "check", "choose", "collect", "confirm", "connect", "copy", "correct", "create"),
        *("define", "delete", "edit", "find", "follow", "free", "install", "keep", "leave", "list", "log", "make"),
        *("meet", "mount", "name", "print", "raise", "read", "reboot", "reinstall", "remove", "rename", "repair"),
        *("repeat", "request", "resolve", "restart", "restore", "run", "set", "shorten", "start", "use", "wait"),
        *("write", "no changes made.", "if", "did you mean", "X", "X."),
    )
)


FINDING_REMEDIES = frozenset(
    (
        *("ask", "blacklist", "boot", "clean", "configure", "disable", "drain", "enable", "enrol", "export", "give"),
        *("look", "move", "no action is required", "open", "plan", "power", "reload", "replace", "reseat", "reset"),
        *("resume", "save", "stop", "update", "watch"),
    )
)


def calls() -> Iterator[tuple[str, ast.Call]]:
    """Place and call of each error that the package makes."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in CLASSES:
                yield f"{path.relative_to(PACKAGE).as_posix()}:{node.lineno}", node


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((word.value for word in call.keywords if word.arg == name), None)


def errors() -> Iterator[tuple[str, ast.expr | None]]:
    """Place and code of each error that the package makes."""
    for place, call in calls():
        yield place, keyword(call, "code")


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


def test_messages_begin_with_cannot_and_a_verb() -> None:
    found = [(place, text) for place, call in calls() for argument in call.args[:1] for text in literals(argument)]
    assert len(found) > 200
    assert [one for one in found if not MESSAGE.match(one[1])] == []


def test_remedies_are_imperatives_without_semicolons() -> None:
    remedies = [(place, remedy) for place, call in calls() if (remedy := keyword(call, "remedy")) is not None]
    found = [(place, text) for place, remedy in remedies for text in literals(remedy) if text]
    assert len(found) > 150
    begins = tuple(f"{word} " for word in REMEDIES)
    assert [one for one in found if ";" in one[1] or not one[1].replace("`", "").startswith(begins)] == []


def test_remedies_of_findings_are_imperatives() -> None:
    """Without a value at their beginning, which may be a command or a remedy of its own."""
    begins = tuple(f"{word}{end}" for word in REMEDIES | FINDING_REMEDIES for end in " .:,")
    found = [text.replace("`", "").strip() for text in finding_remedies() if text]
    assert len(found) > 200
    assert [text for text in found if not text.startswith((*begins, "X", "("))] == []


def finding_remedies() -> Iterator[str]:
    """Yields the remedies of checks and findings."""
    for folder in (*(PACKAGE / name for name in ("health", "preflight", "schedulers")), PLAYBOOKS):
        for path in sorted(folder.rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                match node:
                    case ast.keyword(arg="remedy", value=value):
                        yield from literals(value)
                    case ast.Assign(targets=[ast.Name(id=name)], value=value) if name.lower().endswith("remedy"):
                        yield from literals(value)
