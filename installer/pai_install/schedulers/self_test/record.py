"""Recordings as plain data and back: what a run keeps as evidence, and what tests read. Pure."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from pai_install.schedulers.self_test.model import Recording

_RECORDING = TypeAdapter(Recording)


def as_data(recording: Recording) -> dict[str, Any]:
    """The recording as JSON has it."""
    data: dict[str, Any] = _RECORDING.dump_python(recording, mode="json")
    return data


def parse(data: Any) -> Recording:  # noqa: ANN401 - JSON
    """The recording in what `as_data` gave."""
    return _RECORDING.validate_python(data)
