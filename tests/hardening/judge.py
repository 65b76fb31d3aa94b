"""Whether a check of controls.yml holds, and how it reads.

Forms of a check:
  file: PATTERN, mode: OCTAL         all matching files, at least one, permit no more than this
  file: PATTERN, owner: USER:GROUP   they belong to these
  file: PATH, mode: ..., holds: TEXT the text is in it, too
  program: NAME, flag: FLAG, TEST    the flag on the command line of the running program
  kubelet: A.B.C, TEST               the field in the configuration that the running kubelet uses, defaults included
  proxy: NAME, TEST                  the field in kube-proxy's configuration
  anonymous: PATH, answer: STATUS    the API server's answer to a request without credentials
TEST is one of is: VALUE, not: VALUE, has: WORD, lacks: WORD (of a list with commas), set: true, absent: true, and
only: strong (of a list of cipher suites).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

STRONG = {
    f"TLS_ECDHE_{key}_WITH_{cipher}"
    for key in ("ECDSA", "RSA")
    for cipher in ("AES_128_GCM_SHA256", "AES_256_GCM_SHA384", "CHACHA20_POLY1305", "CHACHA20_POLY1305_SHA256")
}
TESTS = ("is", "not", "has", "lacks", "set", "absent", "only")


def wanted(checks: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """What evidence.py has to look at for these checks."""
    return {
        "files": sorted({check["file"] for check in checks if "file" in check}),
        "texts": sorted({check["file"] for check in checks if "holds" in check}),
        "programs": sorted({check["program"] for check in checks if "program" in check}),
        "anonymous": sorted({check["anonymous"] for check in checks if "anonymous" in check}),
    }


def problems(check: Mapping[str, Any], evidence: Mapping[str, Any]) -> list[str]:
    """What is not as the check wants it; empty when it holds.

    evidence: what evidence.py printed, and the configurations under `kubelet` and `proxy`.
    """
    if "file" in check:
        return _file_problems(check, evidence)
    if "anonymous" in check:
        answer = evidence["anonymous"][check["anonymous"]]
        return [] if answer == check["answer"] else [f"{check['anonymous']} answers {answer}"]
    name, value = _value(check, evidence)
    return [] if _holds(check, value) else [f"{name} is {value!r}"]


def words(check: Mapping[str, Any]) -> str:
    """The check in a reader's words, with Markdown."""
    if "file" in check:
        parts = [f"`{check['file']}`"]
        parts += [f"at most {check['mode']}"] if "mode" in check else []
        parts += [f"belongs to {check['owner']}"] if "owner" in check else []
        parts += [f"holds `{check['holds']}`"] if "holds" in check else []
        return ", ".join(parts)
    if "anonymous" in check:
        return f"`{check['anonymous']}` without credentials: {check['answer']}"
    name = f"--{check['flag']}" if "program" in check else check.get("kubelet", check.get("proxy"))
    return f"`{name}` {_test_words(check)}"


def _test_words(check: Mapping[str, Any]) -> str:
    test = next(test for test in TESTS if test in check)
    value = check[test]
    shown = f"`{str(value).lower() if isinstance(value, bool) else value}`" if value != "" else "empty"
    forms = {"is": shown, "not": f"not {shown}", "has": f"with {shown}", "lacks": f"without {shown}"}
    return {**forms, "set": "given", "absent": "not given", "only": f"{value} ones only"}[test]


def _file_problems(check: Mapping[str, Any], evidence: Mapping[str, Any]) -> list[str]:
    files = evidence["files"][check["file"]]
    found = [] if files else [f"no {check['file']}"]
    if "mode" in check:
        most = int(check["mode"], 8)
        found += [f"{file['path']} has mode {file['mode']}" for file in files if int(file["mode"], 8) & ~most]
    if "owner" in check:
        found += [f"{file['path']} is of {file['owner']}" for file in files if file["owner"] != check["owner"]]
    if "holds" in check and check["holds"] not in evidence["texts"][check["file"]]:
        found.append(f"{check['file']} lacks {check['holds']}")
    return found


def _value(check: Mapping[str, Any], evidence: Mapping[str, Any]) -> tuple[str, Any]:
    """The name and the value that a check is about; None where nothing is given.

    Raises AssertionError when the program does not run: nothing can be said of its flags then.
    """
    if "program" in check:
        arguments = evidence["programs"][check["program"]]
        assert arguments, f"{check['program']} does not run"
        given = dict(word[2:].partition("=")[::2] for word in arguments if word.startswith("--"))
        return f"--{check['flag']}", given.get(check["flag"])
    source = "kubelet" if "kubelet" in check else "proxy"
    value: Any = evidence[source]
    for part in check[source].split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return check[source], value


def _holds(check: Mapping[str, Any], value: Any) -> bool:
    given = value.split(",") if isinstance(value, str) else list(value or ()) if isinstance(value, list) else []
    tests: dict[str, Callable[[Any], bool]] = {
        "is": lambda want: value == want,
        "not": lambda want: value != want,
        "has": lambda want: want in given,
        "lacks": lambda want: want not in given,
        "set": lambda _want: value not in (None, ""),
        "absent": lambda _want: value is None,
        "only": lambda _want: bool(given) and set(given) <= STRONG,
    }
    asked = [test for test in TESTS if test in check]
    assert asked, f"a check without a test: {check}"
    return all(tests[test](check[test]) for test in asked)
