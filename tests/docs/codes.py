"""Exit codes, and the codes of errors."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from pai_install.errors import ExitCode
from tests.docs.markdown import page, table

PACKAGE = Path(__file__).parents[2] / "installer" / "pai_install"
# code -> what it means, what to do
MEANINGS = {
    ExitCode.OK: ("Success. `plan` returns it also if there are changes.", ""),
    ExitCode.USAGE: ("Invalid command line. No changes made.", "Read `pai-install VERB --help`."),
    ExitCode.SITE_INVALID: (
        "The site files have errors, each with file, line, and column. No changes made.",
        "Correct the lines. Warnings never cause this code.",
    ),
    ExitCode.PREFLIGHT_FAILED: (
        (
            "Rejected before any change. Causes: a failed preflight check, a missing requirement of this host (a"
            " program, a component, write access, disk space), another run on the site, a setting that a running"
            " cluster cannot change, an outdated plan file, or an unconfirmed question."
        ),
        "Follow the message, and run the same command again.",
    ),
    ExitCode.UNREACHABLE: (
        "A machine was unreachable. All work that does not need it is done.",
        "Bring it back, or mark it `absent: true`. Run the same command again.",
    ),
    ExitCode.STEP_FAILED: (
        "A step failed. All independent steps are done.",
        "Read machine, task, cause, and remedy at the end of the output. Run the same command again.",
    ),
    ExitCode.VERIFICATION_FAILED: (
        "Installed, but a check of the result failed.",
        "Read the observed and expected values in the findings. Run `pai-install verify` to check again.",
    ),
    ExitCode.INTERNAL: ("A bug in pai-install.", "Report it with the log file that the message names."),
    ExitCode.INTERRUPTED: (
        "Interrupted (Ctrl-C, SIGTERM, or a closed terminal).",
        "Run the same command again to continue.",
    ),
}

_DOCUMENT = (
    "With `--format json`, a failed command also prints one document to stdout ([schema](error.schema.json)):",
    "`schema_version`, `ok` (false), `exit_code`, and `error` with `code`, `message`, `details`, and `remedy`.",
    "The same text is on stderr.",
)
_CODES = "The code names the cause. It is the last line of an error on stderr, and does not change with the message."


def codes_page() -> str:
    """docs/reference/exit-codes.md. Raises KeyError when a code has no meaning here."""
    rows = [(str(int(code)), f"`{code.name}`", *MEANINGS[code]) for code in ExitCode]
    order = "If several apply to one run, the order of precedence is 130, 6, 5, 4, 7."
    codes: dict[str, set[str]] = {}
    for room, code in error_codes():
        codes.setdefault(room, set()).add(f"`{code}`")
    areas = [(room, ", ".join(sorted(found))) for room, found in sorted(codes.items())]
    errors = ["## Codes of errors", "", _CODES, "", *table(("Part", "Codes"), areas)]
    exits = table(("Code", "Name", "Meaning", "What to do"), rows)
    return page("Exit codes", [*exits, "", order, "", *_DOCUMENT, "", *errors])


def error_codes() -> Iterator[tuple[str, str]]:
    """Room and code of each error: given as `code=`, or first to a function of the same file that makes the error."""
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        makers = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and _takes_code(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "id", "")
                given = [word.value for word in node.keywords if word.arg == "code" and name != "closed_object"]
                given += node.args[:1] if name in makers else []
                room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
                yield from ((room, code) for value in given for code in _constants(value))


def _takes_code(function: ast.FunctionDef) -> bool:
    first = [argument.arg for argument in function.args.args[:1]]
    return getattr(function.returns, "id", "") == "PaiError" and first == ["code"]


def _constants(value: ast.expr) -> Iterator[str]:
    match value:
        case ast.Constant(value=str(code)):
            yield code
        case ast.IfExp(body=first, orelse=second):
            yield from (*_constants(first), *_constants(second))
