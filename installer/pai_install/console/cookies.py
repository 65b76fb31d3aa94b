"""Cookies of browsers: for this host alone."""

from __future__ import annotations

from starlette.responses import Response


def set_cookie(response: Response, name: str, value: str, seconds: int) -> None:
    """A cookie that no script reads and no other site sends."""
    response.set_cookie(name, value, max_age=seconds, path="/", secure=True, httponly=True, samesite="lax")


def drop_cookie(response: Response, name: str) -> None:
    """Ends a cookie."""
    response.delete_cookie(name, path="/", secure=True, httponly=True, samesite="lax")
