"""Errors of pai-install, recognized by their codes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar, overload

import pytest

from pai_install.errors import PaiError

E = TypeVar("E", bound=PaiError)


@overload
def raises(code: str, *values: str) -> AbstractContextManager[pytest.ExceptionInfo[PaiError]]: ...
@overload
def raises(code: str, *values: str, kind: type[E]) -> AbstractContextManager[pytest.ExceptionInfo[E]]: ...
@contextmanager
def raises(code: str, *values: str, kind: type[Any] = PaiError) -> Iterator[pytest.ExceptionInfo[Any]]:
    """Expects an error with this code. values: names and numbers that its message has."""
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    assert error.code == code, f"{error.code}: {error.message}"
    assert [value for value in values if value not in error.message] == [], error.message
