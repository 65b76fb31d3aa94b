"""Edits of random files: what is taken back is as it was, and no edit changes anything else."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pai_install.documents.document import Document
from pai_install.documents.parse import parse_document
from pai_install.documents.problem import YamlPath
from pai_install.site_edit.spans import EditError
from pai_install.site_edit.storages import added, granted, removed, revoked

NEW = "new-storage"
QUICK = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
NAMES = st.sampled_from(["data", "'scans'", '"models"', "x1", "homes"])
COMMENTS = st.sampled_from(["", "", "", " # why", "   #", " # it's {odd: [}"])
BETWEEN = st.lists(st.sampled_from(["", "# a line", "      # an indented: line", "   "]), max_size=2)
VALUES = st.sampled_from(
    [
        "word",
        '"quoted # text"',
        "'it''s'",
        "|\n{pad}  block\n{pad}\n{pad}  of text",
        ">-\n{pad}  folded",
        "[a, {b: c}]",
        "",
    ]
)


@st.composite
def storage_configs(draw: st.DrawFn, pad: str) -> list[str]:
    """The key storageConfigs in one of its forms."""
    names = draw(st.lists(NAMES, max_size=3, unique=True))
    comment = draw(COMMENTS)
    match draw(st.sampled_from(["flow", "lines", "rows"])):
        case "rows" if names:
            gap, step = draw(st.sampled_from([" ", "   "])), draw(st.sampled_from(["", "  ", "    "]))
            rows = [f"{pad}storageConfigs:{comment}"]
            for name in names:
                rows += [*draw(BETWEEN), f"{pad}{step}-{gap}{name}{draw(COMMENTS)}"]
            return rows
        case "lines" if names:
            rows = [f"{pad}  {name},{draw(COMMENTS)}" for name in names]
            rows[-1] = rows[-1].replace(",", draw(st.sampled_from(["", ","])), 1)
            return [f"{pad}storageConfigs: [{comment}", *rows, f"{pad}]{draw(COMMENTS)}"]
        case _:
            inner = draw(st.sampled_from([", ", " ,  "])).join(names)
            blank = draw(st.sampled_from(["", " "]))
            return [f"{pad}storageConfigs: [{blank}{inner}{blank}]{comment}"]


@st.composite
def groups(draw: st.DrawFn, head: str, name: str) -> list[str]:
    """The lines of one group; `head` is what stands before its first key."""
    pad = " " * len(head)
    step = draw(st.sampled_from(["  ", "    "]))
    keys: list[list[str]] = [[f"groupname: {name}{draw(COMMENTS)}"]]
    if draw(st.booleans()):
        keys.append([f"description: {draw(VALUES).replace('{pad}', pad)}"])
    form = draw(st.sampled_from(["none", "acls", "all", "all", "flow"]))
    acls = pad + 2 * step
    admin = [f"{acls}admin: false{draw(COMMENTS)}"]
    if form == "acls":
        keys.append(["extension:", f"{pad}{step}acls:{draw(COMMENTS)}", *admin])
    if form == "all":
        inner = draw(st.permutations([admin, draw(storage_configs(acls))]))
        keys.append(["extension:", f"{pad}{step}acls:", *inner[0], *draw(BETWEEN), *inner[1]])
    if form == "flow":
        inside = ", ".join(draw(st.lists(NAMES, max_size=3, unique=True)))
        keys.append([f"extension: {{acls: {{storageConfigs: [{inside}]}}}}{draw(COMMENTS)}"])
    lines: list[str] = []
    for number, key in enumerate(draw(st.permutations(keys))):
        lead = pad if number else head
        lines += [lead + key[0], *key[1:], *draw(BETWEEN)]
    return lines


@st.composite
def files(draw: st.DrawFn) -> tuple[str, list[YamlPath]]:
    """A services-configuration.yaml, and where its groups stand."""
    paths: list[YamlPath] = []
    manager: list[str] = []
    for place in draw(st.lists(st.sampled_from(["admin-group", "default-group"]), unique=True)):
        manager += [f"    {place}:{draw(COMMENTS)}", *draw(groups("      ", place.replace("-", "_")))]
        paths.append((place,))
    count = draw(st.integers(0 if paths else 1, 3))
    column = draw(st.sampled_from(["    ", "      "]))
    manager += ["    grouplist:"] if count else []
    for number in range(count):
        manager += draw(groups(f"{column}-{draw(st.sampled_from([' ', '   ']))}", f"g{number}"))
        paths.append(("grouplist", number))
    lines = ["authentication:", "  OIDC: false", "  group-manager:", *manager]
    other = [f"rest-server:{draw(COMMENTS)}", f"  port: {draw(VALUES).replace('{pad}', '  ')}", *draw(BETWEEN)]
    lines = draw(st.sampled_from([[*lines, *other], [*other, *lines], lines]))
    text = draw(st.sampled_from(["\n", "\r\n"])).join([*draw(BETWEEN), *lines])
    ends = st.sampled_from(["", "\n"]) if "\r" not in text else st.sampled_from(["", "\r\n"])
    return text + draw(ends), [("authentication", "group-manager", *path) for path in paths]


def data(text: str) -> Any:
    """What a text says; it must be right."""
    document = Document("")
    parse_document(text, document)
    assert document.problems == []
    return document


def storages_of(text: str, group: YamlPath) -> list[str]:
    found = data(text).at((*group, "extension", "acls", "storageConfigs"))
    return list(map(str, found or ()))


def changed(before: str, after: str) -> list[str]:
    """The lines of the shorter text between what both begin and end with."""
    one, other = sorted((before.splitlines(), after.splitlines()), key=len)
    while one and one[0] == other[0]:
        one, other = one[1:], other[1:]
    while one and one[-1] == other[-1]:
        one, other = one[:-1], other[:-1]
    return one


@QUICK
@given(files(), st.data())
def test_a_grant_that_is_revoked_leaves_the_text_as_it_was(
    site: tuple[str, list[YamlPath]], draw: st.DataObject
) -> None:
    text, groups = site
    group = draw.draw(st.sampled_from(groups))
    made = granted(text, group, NEW)
    assert storages_of(made, group) == [*storages_of(text, group), NEW]
    assert granted(made, group, NEW) == made
    assert revoked(made, group, NEW) == text


@QUICK
@given(files(), st.data())
def test_no_edit_changes_the_grants_of_another_group_or_another_line(
    site: tuple[str, list[YamlPath]], draw: st.DataObject
) -> None:
    text, groups = site
    group = draw.draw(st.sampled_from(groups))
    here = storages_of(text, group)
    name = draw.draw(st.sampled_from([*here, NEW]))
    try:
        made = draw.draw(st.sampled_from([granted, revoked]))(text, group, name)
    except EditError as error:
        raise AssertionError(error.message) from error
    for other in groups:
        if other != group:
            assert storages_of(made, other) == storages_of(text, other)
    assert set(storages_of(made, group)) ^ set(here) <= {name}
    assert len([line for line in changed(text, made) if line.strip() and not line.strip().startswith("#")]) <= 1
    comments = [line for line in text.splitlines() if line.strip().startswith("#")]
    kept = iter(made.splitlines())
    assert [line for line in comments if line not in kept] == []


@QUICK
@given(files(), st.permutations(range(6)))
def test_grants_in_any_order_are_all_kept(site: tuple[str, list[YamlPath]], order: list[int]) -> None:
    text, groups = site
    made = text
    for number in order:
        made = granted(made, groups[number % len(groups)], f"s{number}")
    for place, group in enumerate(groups):
        wanted = {f"s{number}" for number in order if number % len(groups) == place}
        assert set(storages_of(made, group)) == {*storages_of(text, group), *wanted}


@QUICK
@given(files())
def test_a_storage_that_is_removed_again_leaves_the_text_as_it_was(site: tuple[str, list[YamlPath]]) -> None:
    text, _ = site
    made = added(text, {"name": NEW, "type": "nfs", "server": "nas", "path": "/a b"})
    assert data(made).at(("storages", 0)) == {"name": NEW, "type": "nfs", "server": "nas", "path": "/a b"}
    assert removed(made, NEW) == text
