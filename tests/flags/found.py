"""Finds the command lines in modules, playbooks, units and scripts: nobody has to list them."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path

from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
_IMAGES = ("{image}", "{full}")  # in tables of command lines
UNKNOWN = "…"  # a word that only the run knows
OURS = "ours"
# What runs on machines, and what the dev box asks of them. Left out are the rooms `lab` and `components`, and what
# builds and tests this project: their programs are the dev box's, and every run of the tests is a proof of them.
PYTHON = (
    "playbooks/library/*.py", "playbooks/module_utils/*.py", "roles/*/files/*.py", "roles/*/files/*/*.py",
    "installer/pai_install/cluster/*.py", "installer/pai_install/health/collect/*.py",
    "installer/pai_install/health/act/*.py", "installer/pai_install/system/*.py", "installer/pai_install/parts/*.py",
)  # fmt: skip
SHELL = ("roles/*/files/*.sh", "roles/*/templates/*.sh.j2")
UNITS = ("roles/*/files/*.service", "roles/*/templates/*.service.j2", "roles/*/files/*.conf")
TASKS = ("roles/*/tasks/*.yml", "roles/*/handlers/*.yml", "playbooks/*.yml")
# lists of words whose program stands elsewhere: file -> the program that they go to
COMPLETED = {
    "roles/pod_forwarding/templates/pod-forwarding.sh.j2": "iptables",
    "playbooks/library/pai_join_token.py": "kubeadm",
    "playbooks/module_utils/pai_images.py": "ctr",
    "installer/pai_install/health/collect/collector.py": "kubectl",
    "installer/pai_install/health/act/bandwidth.py": "all_reduce_perf",
    # programs of ours
    "installer/pai_install/health/collect/run.py": OURS,
    "playbooks/module_utils/pai_docker_cache_gc.py": OURS,
    "installer/pai_install/cluster/calls.py": "kubectl",
    "playbooks/module_utils/pai_objects.py": "kubectl",
    "playbooks/module_utils/pai_kubectl.py": "kubectl",
    "playbooks/module_utils/pai_managed.py": "kubectl",
    "playbooks/library/pai_registry_kept.py": "kubectl",
    "playbooks/library/pai_storage_probe.py": "kubectl",
    "playbooks/library/pai_facts.py": "kubectl",
    "playbooks/library/pai_kubeadm.py": "kubeadm",
    "playbooks/library/pai_containerd_config.py": "containerd",
    "installer/pai_install/cluster/over_ssh.py": "ssh",
    "playbooks/library/pai_node_certificate.py": "kubectl",
    "playbooks/library/pai_restore.py": "etcdutl",
    "playbooks/module_utils/pai_kubeadm_upgrade.py": "kubeadm",
    "playbooks/module_utils/pai_node_remains.py": "iptables",
    "roles/gpu_use/files/gpu_use/smi.py": "nvidia-smi",
}
# programs that run another one -> which of the words before that one are theirs
WRAPPERS = {"env": r"-.*|\w+=.*", "timeout": r"-.*|[\d.]+[smhd]?"}


@dataclass(frozen=True)
class Line:
    """A command line, as far as it stands in the source."""

    place: str
    words: tuple[str, ...]
    completed: bool = False  # its program stands elsewhere, and with it perhaps its verb

    @property
    def program(self) -> str:
        """Its program, without the folder."""
        return self.words[0].rpartition("/")[2]

    @property
    def flags(self) -> tuple[str, ...]:
        """Flags without their values. What follows `--`, a script, or the image of `run` is another program's."""
        kept: list[str] = []
        for word in self.words[1:]:
            if word == "--" or word.endswith(".py") or ("run" in self.words and word in _IMAGES):
                break
            if re.match(r"--?[A-Za-z]", word):
                kept.append(re.split(r"[={…]", word, maxsplit=1)[0])
        return tuple(kept)


def lines() -> Iterator[Line]:
    """Every command line with a program that is known where it stands, or by COMPLETED."""
    for patterns, read in ((PYTHON, _python), (SHELL, _shell), (UNITS, _units), (TASKS, _tasks)):
        for path in sorted(path for pattern in patterns for path in ROOT.glob(pattern)):
            for line in read(path):
                yield from unwrapped(line)


def unwrapped(line: Line) -> Iterator[Line]:
    """The command line; of a wrapper's its own words, and then the one that it runs."""
    theirs = WRAPPERS.get(line.program)
    if theirs is None:
        yield line
        return
    own = tuple(takewhile(lambda word: re.fullmatch(theirs, word), line.words[1:]))
    yield replace(line, words=(line.words[0], *own))
    if inner := line.words[1 + len(own) :]:
        yield from unwrapped(replace(line, words=inner))


def _python(path: Path) -> Iterator[Line]:
    name = str(path.relative_to(ROOT))
    tree = ast.parse(path.read_text())
    for number, words in _Lists(tree).found:
        if not any(re.match(r"--?[A-Za-z]", word) for word in words):
            continue
        first = words[0]
        known = first != UNKNOWN and not first.startswith("-") and re.fullmatch(r"[\w./-]+", first) is not None
        if name in COMPLETED and (not known or "/" not in first) and not _is_program(first):
            yield Line(f"{name}:{number}", (COMPLETED[name], *words), completed=True)
        elif known:
            yield Line(f"{name}:{number}", words)
        elif first != UNKNOWN or len(words) > 1:
            yield Line(f"{name}:{number}", (UNKNOWN, *words))
    for node in ast.walk(tree):  # tables of command lines: name | seconds | KiB | command
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for text in node.value.splitlines():
                if row := re.fullmatch(r"\w+ \| \d+ \| \d+ \| (.+)", text):
                    yield from in_shell(f"{name}:{node.lineno}", row[1])


def _is_program(word: str) -> bool:
    from tests.flags.texts import fixtures  # noqa: PLC0415 - the other half of the contract

    return f"{word.rpartition('/')[2]}" in fixtures()


def _constants_of(imported: ast.ImportFrom) -> dict[str, tuple[str, ...]]:
    """Lists of words that a module takes from another of ours."""
    folder, _, name = (imported.module or "").rpartition(".")
    path = ROOT / "playbooks/module_utils" / f"{name}.py"
    if folder != "ansible.module_utils" or not path.exists():
        return {}
    known = _Lists(ast.parse(path.read_text())).constants
    return {alias.asname or alias.name: known[alias.name] for alias in imported.names if alias.name in known}


class _Lists(ast.NodeVisitor):
    """found: lists and tuples of words with their line, those inside others joined to them."""

    def __init__(self, tree: ast.Module) -> None:
        self.found: list[tuple[int, tuple[str, ...]]] = []
        self.constants: dict[str, tuple[str, ...]] = {}
        for node in tree.body:
            if isinstance(node, ast.ImportFrom):
                self.constants |= _constants_of(node)
            targets = (
                node.targets
                if isinstance(node, ast.Assign)
                else [node.target]
                if isinstance(node, ast.AnnAssign)
                else []
            )
            for target in targets:
                if isinstance(target, ast.Name) and isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
                    self.constants[target.id] = self._words(node.value)
        self.visit(tree)

    def visit_List(self, node: ast.List) -> None:
        self._note(node)

    def visit_Tuple(self, node: ast.Tuple) -> None:
        self._note(node)

    def visit_Call(self, node: ast.Call) -> None:
        """A function that is called like a program runs it."""
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name == "Call" and node.args:  # of the cluster's room: words of kubectl
            self.found.append((node.lineno, ("kubectl", *self._words(node.args[0]))))
            return
        if _is_program(name) and node.args:
            self.found.append((node.lineno, (name, *(word for it in node.args for word in self._words(it)))))
        if name == "append":  # to a list of words
            self._note(ast.copy_location(ast.List(node.args), node))
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.op, ast.Add) and any(
            isinstance(side, ast.List | ast.Tuple) for side in (node.left, node.right)
        ):
            self._note(node)
        else:
            self.generic_visit(node)

    def _note(self, node: ast.expr) -> None:
        words = self._words(node)
        if words:
            self.found.append((node.lineno, words))
        for inner in getattr(node, "elts", ()):  # lists of command lines
            if isinstance(inner, ast.List | ast.Tuple | ast.Call | ast.Dict):
                self.visit(inner)

    def _words(self, node: ast.expr) -> tuple[str, ...]:  # noqa: PLR0911 - one per kind of expression
        match node:
            case ast.Constant(value=str(text)):
                return (text,)
            case ast.JoinedStr(values=values):
                return ("".join(str(it.value) if isinstance(it, ast.Constant) else UNKNOWN for it in values),)
            case ast.Name(id=name):
                return self.constants.get(name, (UNKNOWN,))
            case ast.Starred(value=value):
                return self._words(value)
            case ast.IfExp(body=body, orelse=orelse):
                return (*self._words(body), *self._words(orelse))
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                return (*self._words(left), *self._words(right))
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                if any(isinstance(it, ast.List | ast.Tuple) for it in elements):
                    return ()
                return tuple(word for it in elements for word in self._words(it))
        return (UNKNOWN,)


def _shell(path: Path) -> Iterator[Line]:
    name = str(path.relative_to(ROOT))
    for number, text in enumerate(path.read_text().replace("\\\n", " ").splitlines(), 1):
        if not text.lstrip().startswith("#"):
            yield from in_shell(f"{name}:{number}", text)


def in_shell(place: str, text: str) -> Iterator[Line]:
    """The simple commands of a shell line; one that starts in quotes is found when its inside is read."""
    text = re.sub(r"\{[{%].*?[%}]\}", UNKNOWN, text)
    for part in re.split(
        r"\|\|?|&&|;|\$\(|\)(?= |$)|(?<!\S)[{}!](?= )|\b(?:do|then|exec|if|elif|else|while|until)\b", text
    ):
        try:
            words = tuple(word for word in shlex.split(part) if not re.match(r"\d?[<>]|\w+=", word))
        except ValueError:
            continue
        if words and words[0] in ("sh", "/bin/sh") and "-c" in words and len(words) > 2:
            yield from in_shell(place, words[2])
        if words and words[0].startswith("$"):
            yield Line(place, (COMPLETED.get(place.rpartition(":")[0], UNKNOWN), *words), completed=True)
        elif words and re.fullmatch(r"[\w./-]+", words[0]):
            yield Line(place, words)


def _units(path: Path) -> Iterator[Line]:
    name = str(path.relative_to(ROOT))
    for number, text in enumerate(path.read_text().splitlines(), 1):
        if found := re.match(r"Exec\w+=[-+@!:]*(/\S.*)", text):
            yield from in_shell(f"{name}:{number}", found[1])


def _tasks(path: Path) -> Iterator[Line]:
    name = str(path.relative_to(ROOT))
    for key, value in _values(YAML(typ="safe").load(path)):
        if key == "argv" and isinstance(value, list):
            yield Line(name, tuple(map(str, value)))
        elif key in ("validate", "cmd", "ansible.builtin.command", "ansible.builtin.shell") and isinstance(value, str):
            for text in re.findall(r"'([^']+ [^']+)'", value) if value.startswith("{{") else [value]:
                yield from in_shell(name, text)


def _values(document: object) -> Iterator[tuple[str, object]]:
    if isinstance(document, dict):
        for key, value in document.items():
            yield str(key), value
            yield from _values(value)
    elif isinstance(document, Sequence) and not isinstance(document, str):
        for item in document:
            yield from _values(item)
