"""Every scheduler that a site can name has a back end, which answers all that is asked of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pai_install import schedulers
from pai_install.parts.registry import PARTS
from pai_install.schedulers.registry import backend_of
from pai_install.schedulers.self_test.guarantees import PROMISES
from pai_install.scheduling.model import BACKENDS, Backend
from tests.virtual_clusters import CASES, with_backend

PACKAGE = Path(schedulers.__file__).parents[1]
# packages of back ends, which only the registry imports together
BACKEND_PACKAGES = ("kueue", "volcano", "hived", "kubernetes")


@pytest.mark.parametrize("name", BACKENDS)
def test_back_end(name: Backend) -> None:
    backend = backend_of(name)
    assert backend.name == name
    assert {f"addon.{addon}" for addon in backend.addons} <= {part.name for part in PARTS}
    assert backend.self_test.unsupported.keys() <= PROMISES.keys()


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("case", CASES)
def test_desired_state_names_machines_of_the_site_only(name: Backend, case: str) -> None:
    scheduling = with_backend(CASES[case](), name)
    desired = backend_of(name).desired(scheduling)
    assert desired.objects
    assert {*desired.node_labels, *desired.role_variables} <= set(scheduling.skus)


def test_only_the_registry_imports_several_back_ends() -> None:
    pattern = re.compile(rf"pai_install\.schedulers\.({'|'.join(BACKEND_PACKAGES)})\b")
    found = {
        path.relative_to(PACKAGE).as_posix(): {*pattern.findall(path.read_text())} for path in PACKAGE.rglob("*.py")
    }
    assert [path for path, packages in found.items() if len(packages) > 1] == ["schedulers/registry.py"]
