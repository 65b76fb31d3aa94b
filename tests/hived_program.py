"""HiveD's program, which is no part of this repository: PAI_HIVED names it, built as docs/decisions/010 says."""

from __future__ import annotations

import os

import pytest

PROGRAM = os.environ.get("PAI_HIVED", "")
NEEDS_HIVED = pytest.mark.skipif(not PROGRAM, reason="PAI_HIVED names no program of HiveD")
