"""playbooks/module_utils where Ansible lets modules import it: below ansible.module_utils."""

from __future__ import annotations

import importlib
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
