"""The files that a role uses: its own, and files of playbooks/ that its tasks use, directly or by imports. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

LIBRARY, ACTIONS, FILTERS, UTILS = (
    f"playbooks/{folder}/" for folder in ("library", "action_plugins", "filter_plugins", "module_utils")
)
# Documentation and tests of a role: machines never see them.
_NOT_RUN = (".pyc", ".md")
_TESTS = "molecule"
_TASK_FOLDERS = {"tasks", "handlers"}

_KEY = re.compile(r"^[ -]*(\w+):", re.MULTILINE)
_FILTER = re.compile(r"\|\s*(\w+)")
_DEFINED_FILTER = re.compile(r'"(\w+)":')
_IMPORT = re.compile(r"^ *from ansible\.module_utils\S* import (?:\([^)]*\)|.*)", re.MULTILINE)
_WORD = re.compile(r"\w+")
_AGENT = re.compile(r"""["'](\w+)["'] \| agent_(?:files|rows)""")
# the package agents/ of the controller host, as a path below the content folder
AGENTS = "agents/"

# path below the content folder -> text
Files = Mapping[str, str]


@dataclass(frozen=True)
class Plugins:
    """The content of the four plugin folders of playbooks/.

    modules: name -> files of the module and of its action. filters: name -> file. imports: file -> its imports of
    module_utils.
    """

    modules: Mapping[str, frozenset[str]]
    filters: Mapping[str, str]
    imports: Mapping[str, frozenset[str]]

    def with_imports(self, paths: Iterable[str]) -> frozenset[str]:
        """Returns the files and all their direct and indirect imports."""
        found: set[str] = set()
        waiting = set(paths)
        while waiting:
            path = waiting.pop()
            found.add(path)
            waiting |= self.imports[path] - found
        return frozenset(found)


def read_plugins(files: Files) -> Plugins:
    """Parses the files of all four folders and skips other files."""
    python = {folder: _python_files(files, folder) for folder in (LIBRARY, ACTIONS, FILTERS, UTILS)}
    utils = python[UTILS]
    words = {path: _imported_words(files[path]) for paths in python.values() for path in paths.values()}
    return Plugins(
        modules={
            name: frozenset(found for folder in (LIBRARY, ACTIONS) if (found := python[folder].get(name)))
            for name in {*python[LIBRARY], *python[ACTIONS]}
        },
        filters={name: path for path in python[FILTERS].values() for name in _defined_filters(files[path])},
        imports={path: frozenset(utils[word] for word in found if word in utils) for path, found in words.items()},
    )


def files_of_role(role: str, files: Files, plugins: Plugins) -> frozenset[str]:
    """Paths that the role runs with. files: those of the role at least."""
    own = {path for path in files if path.startswith(f"roles/{role}/") and _runs(path)}
    used = plugins.with_imports(used for path in own for used in _named_in(path, files[path], plugins))
    return frozenset(own) | used | files_of_agents((files[path] for path in own), files)


def files_of_agents(texts: Iterable[str], files: Iterable[str]) -> frozenset[str]:
    """Files of the agents that texts of a role or an add-on install."""
    agents = {agent for text in texts for agent in _AGENT.findall(text)}
    folders = {"__init__.py", "common", *agents} if agents else set()
    return frozenset(path for path in files if path.startswith(AGENTS) and path.split("/")[1] in folders)


def _runs(path: str) -> bool:
    return not path.endswith(_NOT_RUN) and _TESTS not in path.split("/")


def _named_in(path: str, text: str, plugins: Plugins) -> set[str]:
    """Files of the modules, actions and filters that a file of a role names."""
    # Keys name modules in tasks and handlers only. In other files they are variables.
    keys = set(_KEY.findall(text)) if path.split("/")[2] in _TASK_FOLDERS else set()
    modules = {file for name in keys & plugins.modules.keys() for file in plugins.modules[name]}
    return modules | {plugins.filters[name] for name in set(_FILTER.findall(text)) & plugins.filters.keys()}


def _python_files(files: Files, folder: str) -> dict[str, str]:
    """Name of a plugin -> its path."""
    return {path[len(folder) : -3]: path for path in files if path.startswith(folder) and path.endswith(".py")}


def _imported_words(text: str) -> set[str]:
    return {word for statement in _IMPORT.findall(text) for word in _WORD.findall(statement)}


def _defined_filters(text: str) -> list[str]:
    """Names in the mapping that a filter plugin gives Ansible."""
    return _DEFINED_FILTER.findall(text.partition("class FilterModule")[2])
