"""No input whatever gives a traceback: real files, mutated, are read and reported on.

PAI_FUZZ_EXAMPLES raises the number of examples (100).
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pai_install.documents.problem import YamlPath, dotted, text_lines
from pai_install.documents.reader import read_document
from pai_install.errors import PaiError
from pai_install.migrate import migrate
from pai_install.migrate.account import AccountLine
from pai_install.site.load import SiteReading, read_site
from pai_install.site.summary import headline, machine_table, meanings, site_json
from pai_install.site_edit.annotate import annotate
from tests.site_cases import cases
from tests.unit.site.sites import CONFIG, LAYOUT, write_site

REPOSITORY = Path(__file__).parents[3]
SEEDS = {
    name: [path.read_bytes() for path in sorted(REPOSITORY.glob(f"layouts/*/{name}"))]
    + [path.read_bytes() for path in sorted(REPOSITORY.glob(f"tests/golden/site/openpai/{name}"))]
    + [case.text.encode() for case in cases() if case.file == name]
    for name in ("layout.yaml", "config.yaml", "services-configuration.yaml")
}
SPLICES = [
    b"\t", b"\n", b"\r", b"\x00", b"\xff", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"- ", b": ", b"? ", b"&a ",
    b"*a ", b"<<: *a\n", b"!!int ", b"!vault ", b"!x ", b"|\n", b">-\n", b"[", b"]", b"{", b"}", b'"', b"'",
    b"#", b"%", b"@", b"`", b"---\n", b"...\n", b"~", b"null", b"yes", b"010", b"0x1F", b"1e999", b".inf",
    b".nan", b"-1", b"999.9.9.9", b"2001:db8::1", b"2026-01-01", b"12:30:45", b'"\\ud800"', b'"\\e[31m"',
    b"\xf0\x9f\x92\xa5", b"%YAML 1.1\n---\n", b"%TAG ! x\n", b"{env: HOME}", b"{file: /dev/zero}", b"{file: .}",
    b"~nobody-there/x", b"password: x\n", b"pai-master: true\n", b"\xef\xbb\xbf", b"9" * 400,
]  # fmt: skip
Mutation = Callable[[bytes], bytes]


def _splice(where: float, what: bytes) -> Mutation:
    return lambda data: data[: int(where * len(data))] + what + data[int(where * len(data)) :]


def _cut(where: float, length: int) -> Mutation:
    return lambda data: data[: int(where * len(data))] + data[int(where * len(data)) + length :]


def _move_line(source: float, target: float) -> Mutation:
    def move(data: bytes) -> bytes:
        lines = data.splitlines(keepends=True)
        if not lines:
            return data
        line = lines[int(source * (len(lines) - 1))]
        return b"".join([*lines[: int(target * len(lines))], line, *lines[int(target * len(lines)) :]])

    return move


def _replace_value(where: float, what: bytes) -> Mutation:
    def replace(data: bytes) -> bytes:
        lines = data.splitlines(keepends=True)
        index = int(where * (len(lines) - 1)) if lines else 0
        if lines and b": " in lines[index]:
            lines[index] = lines[index].partition(b": ")[0] + b": " + what + b"\n"
        return b"".join(lines)

    return replace


places = st.floats(min_value=0, max_value=1)
pieces = (
    st.sampled_from(SPLICES)
    | st.binary(max_size=8)
    | st.text(max_size=8).map(lambda t: t.encode("utf-8", "surrogatepass"))
)
mutations = st.one_of(
    st.builds(_splice, places, pieces),
    st.builds(_cut, places, st.integers(1, 40)),
    st.builds(_move_line, places, places),
    st.builds(_replace_value, places, pieces),
)


def mutated(name: str) -> st.SearchStrategy[bytes]:
    """A real file of this name after up to six mutations; sometimes bytes that were never a file."""

    def apply(seed: bytes, changes: list[Mutation]) -> bytes:
        for change in changes:
            seed = change(seed)
        return seed

    real = st.builds(apply, st.sampled_from(SEEDS[name]), st.lists(mutations, max_size=6))
    return real | st.binary(max_size=60) if name == "config.yaml" else real


@settings(
    max_examples=int(os.environ.get("PAI_FUZZ_EXAMPLES", "100")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    database=None,
)
@given(
    layout=mutated("layout.yaml") | st.just(LAYOUT.encode()),
    config=mutated("config.yaml") | st.just(CONFIG.encode()),
    services=st.none() | mutated("services-configuration.yaml"),
)
def test_any_bytes_give_a_site_or_problems(layout: bytes, config: bytes, services: bytes | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        (directory / "layout.yaml").write_bytes(layout)
        (directory / "config.yaml").write_bytes(config)
        if services is not None:
            (directory / "services-configuration.yaml").write_bytes(services)
        _check(directory)


OPENPAI = REPOSITORY / "tests/golden/site/openpai"
SERVICES_LINES = (OPENPAI / "services-configuration.yaml").read_text().splitlines()
HIVED_LINES = range(SERVICES_LINES.index("hivedscheduler:"), SERVICES_LINES.index("authentication:"))
RULE_LINES = range(SERVICES_LINES.index("  customized-alerts: |"), SERVICES_LINES.index("grafana:"))
LEAVES = [number for number, line in enumerate(SERVICES_LINES) if re.search(r": [^|{\[]*$", line)]
NASTY = [
    "x", "-1", "0", "010", "1e99", "9" * 400, "true", "null", "''", '"two\\nlines"', "[1, [2]]", "{a: {b: 1}}",
    "[]", "{}", "!vault x", "{env: NOT_SET}", "{file: /dev/zero}", "http://user:pw@x y", "~", "2026-01-01", ".nan",
    "x" * 5000,
]  # fmt: skip


@settings(
    max_examples=int(os.environ.get("PAI_FUZZ_EXAMPLES", "100")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    database=None,
)
@given(leaf=st.sampled_from(LEAVES), value=st.sampled_from(NASTY))
def test_a_wrong_value_of_a_section_is_told_at_its_own_line(leaf: int, value: str) -> None:
    lines = list(SERVICES_LINES)
    lines[leaf] = f"{lines[leaf].partition(': ')[0]}: {value}"
    with tempfile.TemporaryDirectory() as folder:
        write_site(Path(folder), layout=(OPENPAI / "layout.yaml").read_text(), services="\n".join(lines) + "\n")
        problems = _check(Path(folder)).problems
    # what stands in a list is told at its entry, half a login at the mapping above; a cell at what is made of it, and a
    # rule in a text at the key of the text
    elsewhere = leaf in HIVED_LINES or leaf in RULE_LINES
    # those of the unchanged file
    known = ("rest-server.default-pai-admin-password", "webportal.plugins")
    others = [problem for problem in problems if not problem.path.startswith(known)]
    assert all(abs(problem.line - 1 - leaf) <= 4 or elsewhere for problem in others), problems


Files = dict[str, bytes]
OLD = REPOSITORY / "tests" / "golden" / "site" / "migrate"
OLD_SITES: list[Files] = [
    *({path.name: path.read_bytes() for path in sorted(folder.iterdir())} for folder in sorted(OLD.glob("*/old"))),
    {"quick-start.yaml": b"machines:\n  - 10.0.0.1\n  - 10.0.0.2\nssh-username: pai\nssh-password: pw\n"},
]
# what may lie beside an old site: files of other versions, of the current form, and those under wrong names
STRAYS = [
    *(item for site in OLD_SITES for item in site.items()),
    *((name, seed) for name, seeds in SEEDS.items() for seed in seeds),
    ("layout.yml", OLD_SITES[0]["layout.yaml"]),
    ("services-configuration.yml", b"grafana: {port: 1}\n"),
    ("k8s-role-definition.yaml", b"x"),
    ("x.template", b"\xff"),
]


def _old_site(site: Files, strays: list[tuple[str, bytes]], changes: list[tuple[int, Mutation]]) -> Files:
    files = {**dict(strays), **site}
    names = sorted(files)
    for number, change in changes:
        name = names[number % len(names)]
        files[name] = change(files[name])
    return files


old_sites = st.builds(
    _old_site,
    st.sampled_from(OLD_SITES),
    st.lists(st.sampled_from(STRAYS), max_size=2),
    st.lists(st.tuples(st.integers(0, 9), mutations), max_size=4),
)


@settings(
    max_examples=int(os.environ.get("PAI_FUZZ_EXAMPLES", "100")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    database=None,
)
@given(files=old_sites)
def test_any_old_site_is_migrated_or_refused(files: Files) -> None:
    with tempfile.TemporaryDirectory() as folder:
        old, new = Path(folder) / "old", Path(folder) / "new"
        old.mkdir()
        for name, content in files.items():
            (old / name).write_bytes(content)
        try:
            done = migrate(old, new)
        except PaiError:
            assert not new.exists()
            return
        _check(new)
        _accounts_for_all(old, files, done.account)


def _accounts_for_all(old: Path, files: Files, account: Iterable[AccountLine]) -> None:
    """Every file is in the account, and of a YAML file that has no problem every leaf once, as PyYAML finds them."""
    told = Counter((entry.file, entry.path) for entry in account)
    for name, content in files.items():
        assert told[name, ""] == 1
        own = Counter({path: count for (file, path), count in told.items() if file == name and path})
        if own and not name.endswith(".csv") and not read_document(old / name).problems:
            # the parser in C, as the product has it: the other one refuses tabs in names
            node = yaml.compose(content.decode("utf-8-sig"), Loader=yaml.CSafeLoader)
            assert node is not None
            assert own == Counter(dotted(leaf) for leaf in _leaves(node))


def _leaves(node: yaml.Node, path: YamlPath = ()) -> list[YamlPath]:
    inner: list[tuple[str | int, yaml.Node]] = []
    if isinstance(node, yaml.MappingNode):
        inner = [(key.value, value) for key, value in node.value]
    elif isinstance(node, yaml.SequenceNode):
        inner = list(enumerate(node.value))
    below = [leaf for key, value in inner for leaf in _leaves(value, (*path, key))]
    return below or ([path] if path else [])


def _check(directory: Path) -> SiteReading:
    reading = read_site(directory)
    errors = [problem for problem in reading.problems if problem.is_error]
    assert (reading.site is None) == bool(errors)
    lines = list(text_lines(reading.problems))
    for document in reading.sources.values():
        lines.extend(annotate(document))
    assert "".join(lines).isprintable()
    for problem in reading.problems:
        document = reading.sources[Path(problem.file).name]
        assert 1 <= problem.line <= max(1, len(document.lines))
        assert problem.column >= 1
        assert problem.message
        json.dumps(problem.as_json()).encode()
    if reading.site is not None:
        json.dumps(site_json(reading.site)).encode()
        assert headline(reading.site)
        assert list(machine_table(reading.site))
        assert all(meaning.value for meaning in meanings(reading.site))
    return reading
