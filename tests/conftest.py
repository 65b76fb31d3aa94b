"""What holds for all tests."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# The machines that run the tests are shared: how long an example takes says nothing about our code.
settings.register_profile(
    "shared",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    max_examples=int(os.environ.get("PAI_FUZZ_EXAMPLES", "100")),
    derandomize=True,
)
settings.load_profile("shared")
