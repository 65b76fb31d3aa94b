"""playbooks/module_utils where Ansible lets modules import it: below ansible.module_utils."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from types import ModuleType

import ansible.module_utils

PLAYBOOKS = Path(__file__).parents[1] / "playbooks"
_SHARED = str(PLAYBOOKS / "module_utils")

if _SHARED not in ansible.module_utils.__path__:
    ansible.module_utils.__path__.append(_SHARED)


def module_util(name: str) -> ModuleType:
    """playbooks/module_utils/NAME.py, the very module that our modules import."""
    return importlib.import_module(f"ansible.module_utils.{name}")


def filter_plugin(name: str) -> ModuleType:
    """playbooks/filter_plugins/NAME.py."""
    spec = importlib.util.spec_from_file_location(name, PLAYBOOKS / "filter_plugins" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
