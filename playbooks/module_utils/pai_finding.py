"""The plain form of a verdict, as modules give it to pai-install.

Ids are declared in installer/pai_install/health/cluster/checks.py, with title, rule and remedy.
"""

from __future__ import annotations


def finding(check: str, verdict: str, subject: str, message: str, **words: str) -> dict[str, str]:
    """Returns one finding. subject: a machine or "cluster". Empty: the machine of the module.

    words: optional value, expected, and remedy.
    """
    return {"id": check, "verdict": verdict, "subject": subject, "message": message, **words}


def own_finding(check: str, verdict: str, message: str, **words: str) -> dict[str, str]:
    """One verdict about the machine that the module runs on."""
    return finding(check, verdict, "", message, **words)
