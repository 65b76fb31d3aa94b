"""Exit codes."""

from __future__ import annotations

from pai_install.errors import ExitCode
from tests.docs.markdown import page, table

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
            " a component that cannot be had, the right to write into the site's folder), another run at work on the"
            " site, a setting that a running cluster cannot change, a saved plan that does not hold any more, or a no"
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
    "`message`, `details` and `remedy`. The same stands on stderr for people.",
)


def codes_page() -> str:
    """docs/reference/exit-codes.md. Raises KeyError when a code has no meaning here."""
    rows = [(str(int(code)), f"`{code.name}`", *MEANINGS[code]) for code in ExitCode]
    order = "Where several apply to one run, 130 comes before 6, 6 before 5, 5 before 4, and 4 before 7."
    return page("Exit codes", [*table(("Code", "Name", "Meaning", "What to do"), rows), "", order, "", *_DOCUMENT])
