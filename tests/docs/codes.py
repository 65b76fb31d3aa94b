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
    ExitCode.OK: ("Done; `plan` returns it also when there is something to do.", ""),
    ExitCode.USAGE: ("The command line is wrong; nothing was done.", "`pai-install VERB --help`"),
    ExitCode.SITE_INVALID: (
        "The site's files have errors, each named with file, line and column; nothing was done.",
        "Correct the lines. Warnings never lead to this code.",
    ),
    ExitCode.PREFLIGHT_FAILED: (
        (
            "Refused before anything was touched: a failed preflight check, something missing on the dev box (a "
            "program,"
            " an unavailable component, the right to write into the site's folder), another run at work on the"
            " site, a setting that a running cluster cannot change, a saved plan that no longer holds, or a no"
            " to the question whether to go on. Also when the dev box's disk is full."
        ),
        "Do what the message says, then run the same command again.",
    ),
    ExitCode.UNREACHABLE: (
        "A machine did not answer; everything that does not need it is done.",
        "Bring it back, or mark it `absent: true`; then run the same command again.",
    ),
    ExitCode.STEP_FAILED: (
        "A step failed somewhere; everything that does not depend on it is done.",
        "The end of the output names machine, task, cause and remedy; then run the same command again.",
    ),
    ExitCode.VERIFICATION_FAILED: (
        "Everything was installed, but a check of the result failed.",
        "The findings name what was seen and expected; `pai-install verify` proves it again.",
    ),
    ExitCode.INTERNAL: ("A bug in pai-install.", "The message names a log: report it with that."),
    ExitCode.INTERRUPTED: (
        "Interrupted (Ctrl-C, SIGTERM or a closed terminal).",
        "Run the same command again: it continues.",
    ),
}

_DOCUMENT = (
    "With `--format json` a verb that could not do its work says so on stdout, too, in one document",
    "([error.schema.json](error.schema.json)): `schema_version`, `ok` (false), `exit_code`, and `error` with",
    "`code`, `message`, `details` and `remedy`. The same stands on stderr for people.",
)
_CODES = "The code names the cause. It is the last line of an error on stderr, and stays when the message is reworded."


def codes_page() -> str:
    """docs/reference/exit-codes.md. Raises KeyError when a code has no meaning here."""
    rows = [(str(int(code)), f"`{code.name}`", *MEANINGS[code]) for code in ExitCode]
    order = "Where several apply to one run, 130 comes before 6, 6 before 5, 5 before 4, and 4 before 7."
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
    return getattr(function.returns, "id", "") == "PaiError" and function.args.args[0].arg == "code"


def _constants(value: ast.expr) -> Iterator[str]:
    match value:
        case ast.Constant(value=str(code)):
            yield code
        case ast.IfExp(body=first, orelse=second):
            yield from (*_constants(first), *_constants(second))
