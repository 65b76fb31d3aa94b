"""Storages and grants edited in the text: what is not part of the edit stays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from syrupy.assertion import SnapshotAssertion

from pai_install.site.load import load_site
from pai_install.site.services.model import Services
from pai_install.site_edit.items import with_item, without_item
from pai_install.site_edit.lines import with_lines, without_lines
from pai_install.site_edit.shown import difference
from pai_install.site_edit.spans import EditError, read_spans
from pai_install.site_edit.storages import added, changed, granted, removed, revoked
from pai_install.site_edit.write import flow, scalar
from tests.unit.site.sites import write_site

OPENPAI = Path(__file__).parents[2] / "golden" / "site" / "openpai" / "services-configuration.yaml"
GROUP = ("authentication", "group-manager", "grouplist", 0)
HEAD = "authentication:\n  group-manager:\n    grouplist:\n"
ENTRY = {"name": "data", "type": "nfs", "server": "nas", "path": "/data"}


def of(*lines: str) -> str:
    """A file with one group, whose lines these are."""
    return HEAD + "".join(f"{line}\n" for line in lines)


# what a group looks like before, and with the storage `data`
GRANTS = {
    "nothing": (
        of("      - groupname: a"),
        of(
            "      - groupname: a",
            "        extension:",
            "          acls:",
            "            storageConfigs:",
            "              - data",
        ),
    ),
    "nothing, odd indentation": (
        of("      -   groupname: a  # c", "          description: x"),
        of(
            "      -   groupname: a  # c",
            "          description: x",
            "          extension:",
            "            acls:",
            "              storageConfigs:",
            "                - data",
        ),
    ),
    "acls without storages": (
        of("      - groupname: a", "        extension:", "          acls: # who", "            admin: false # no"),
        of(
            "      - groupname: a",
            "        extension:",
            "          acls: # who",
            "            admin: false # no",
            "            storageConfigs:",
            "              - data",
        ),
    ),
    "a list in brackets": (
        of("      - groupname: a", "        extension: {acls: {storageConfigs: [ 'x',  y ]}} # c"),
        of("      - groupname: a", "        extension: {acls: {storageConfigs: [ 'x',  y, data ]}} # c"),
    ),
    "empty brackets": (
        of("      - {groupname: a, extension: {acls: {storageConfigs: [  ]}}}"),
        of("      - {groupname: a, extension: {acls: {storageConfigs: [data  ]}}}"),
    ),
    "brackets over lines": (
        of(
            "      - groupname: a",
            "        extension:",
            "          acls:",
            "            storageConfigs: [",
            "              x, # one",
            "              y # two",
            "            ]",
        ),
        of(
            "      - groupname: a",
            "        extension:",
            "          acls:",
            "            storageConfigs: [",
            "              x, # one",
            "              y, data # two",
            "            ]",
        ),
    ),
    "a list of lines": (
        of(
            "      - groupname: a",
            "        extension:",
            "          acls:",
            "            storageConfigs:",
            "            -   x # one",
            "            # between",
            "            -   y # two",
            "            # after",
            "",
            "            admin: false",
        ),
        of(
            "      - groupname: a",
            "        extension:",
            "          acls:",
            "            storageConfigs:",
            "            -   x # one",
            "            # between",
            "            -   y # two",
            "            -   data",
            "            # after",
            "",
            "            admin: false",
        ),
    ),
}


@pytest.mark.parametrize("case", GRANTS)
def test_a_grant_is_one_line_and_a_revoke_takes_it_away(case: str) -> None:
    before, after = GRANTS[case]
    assert granted(before, GROUP, "data") == after
    assert granted(after, GROUP, "data") == after, "granted already"
    assert revoked(after, GROUP, "data") == before
    assert revoked(before, GROUP, "data") == before, "not granted"


@pytest.mark.parametrize("case", GRANTS)
@pytest.mark.parametrize("end", ["\r\n", "\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("last", [True, False])
def test_line_ends_stay_as_they_are(case: str, end: str, mark: str, last: bool) -> None:
    before, after = (mark + (text if last else text[:-1]).replace("\n", end) for text in GRANTS[case])
    assert granted(before, GROUP, "data") == after
    assert revoked(after, GROUP, "data") == before


@pytest.mark.parametrize(
    ("group", "made"),
    [
        (
            "      - groupname: a\n        extension:\n          acls: # none\n",
            (
                "      - groupname: a\n        extension:\n          acls: # none\n            storageConfigs:\n"
                "              - data\n"
            ),
        ),
        (
            "      - groupname: a\n        extension: ~ # none\n",
            "      - groupname: a\n        extension: {acls: {storageConfigs: [data]}} # none\n",
        ),
        ("      - {groupname: a}\n", "      - {groupname: a, extension: {acls: {storageConfigs: [data]}}}\n"),
        (
            "      - {groupname: a, extension: }\n",
            "      - {groupname: a, extension: {acls: {storageConfigs: [data]}} }\n",
        ),
        (
            '      - {"groupname": "a", "extension": {"acls": {}}}\n',
            '      - {"groupname": "a", "extension": {"acls": {storageConfigs: [data]}}}\n',
        ),
        (
            "      - groupname: a\n        extension:\n          acls:\n            storageConfigs:\n# later\n",
            (
                "      - groupname: a\n        extension:\n          acls:\n            storageConfigs:\n"
                "              - data\n# later\n"
            ),
        ),
    ],
)
def test_what_has_no_value_gets_one(group: str, made: str) -> None:
    assert granted(HEAD + group, GROUP, "data") == HEAD + made


@pytest.mark.parametrize(
    ("group", "made"),
    [
        (
            (
                "      - groupname: a\n        extension:\n          acls:\n            storageConfigs: # why\n"
                "              # this\n              - data # that\n"
            ),
            (
                "      - groupname: a\n        extension:\n          acls:\n            storageConfigs: [] # why\n"
                "              # this\n"
            ),
        ),
        (
            (
                "      - groupname: a\n        extension:\n          acls:\n            admin: false\n"
                "            storageConfigs:\n            - data\n        description: x\n"
            ),
            (
                "      - groupname: a\n        extension:\n          acls:\n            admin: false\n"
                "        description: x\n"
            ),
        ),
        (
            (
                "      - extension:\n          acls:\n            storageConfigs:\n            - data\n"
                "        groupname: a\n"
            ),
            "      - extension:\n          acls:\n            storageConfigs: []\n        groupname: a\n",
        ),
        (
            "      - {groupname: a, extension: {acls: {storageConfigs: [data, x, data, y]}}}\n",
            "      - {groupname: a, extension: {acls: {storageConfigs: [x, y]}}}\n",
        ),
        (
            (
                "      - groupname: a\n        extension: {acls: {storageConfigs: [\n          x, # one\n"
                "          data # two\n        ]}}\n"
            ),
            (
                "      - groupname: a\n        extension: {acls: {storageConfigs: [\n          x, # one\n"
                "           # two\n        ]}}\n"
            ),
        ),
    ],
)
def test_what_is_left_after_a_revoke(group: str, made: str) -> None:
    assert revoked(HEAD + group, GROUP, "data") == HEAD + made


@pytest.mark.parametrize(
    "text",
    [
        "x: &b {acls: {storageConfigs: [x]}}\n" + of("      - {groupname: a, extension: *b}"),
        "x: &b {extension: {acls: {storageConfigs: [x]}}}\n" + of("      - {groupname: a, <<: *b}"),
        of("      - groupname: a", "        extension: &b {acls: {storageConfigs: [x]}}")
        + "      - {groupname: c, extension: *b}\n",
        of("      - groupname: a", "        extension: &b", "          acls: {storageConfigs: [x]}", "      - *b"),
    ],
)
def test_what_would_change_something_else_is_refused(text: str) -> None:
    with pytest.raises(EditError, match="no command edits"):
        granted(text, GROUP, "data")


def test_a_storage_is_added_as_the_others_are_written(snapshot: SnapshotAssertion) -> None:
    assert added("", ENTRY) == snapshot
    other = "storages:\n-   name: x # one\n    type: hostPath\n    path: /x\n# end\n"
    made = "-   name: data\n    type: nfs\n    server: nas\n    path: /data\n"
    assert added(other, ENTRY) == other.replace("# end", f"{made}# end")
    assert removed(added(other, ENTRY), "data") == other
    assert added("storages: []\n", ENTRY) == snapshot
    assert added("a: 1\n# end", ENTRY).startswith("a: 1\nstorages:\n  - name: data\n")


def test_the_last_storage_takes_its_section_with_it_where_something_is_left() -> None:
    assert removed(added("a: 1\n", ENTRY), "data") == "a: 1\n"
    assert removed(added("", ENTRY), "data") == "storages: []\n"


def test_the_file_of_openpai_keeps_every_line() -> None:
    before = OPENPAI.read_text()
    assert "storageConfigs: [data, models]" in before
    made = added(before, {**ENTRY, "mount-options": ["nfsvers=4.1", "hard"], "password": {"env": "A_B"}})
    for place in ("admin-group", "default-group"):
        made = granted(made, ("authentication", "group-manager", place), "data")
    made = granted(made, GROUP, "homes")
    kept = iter(made.splitlines())
    others = [line for line in before.splitlines() if "storageConfigs" not in line]
    assert [line for line in others if line not in kept] == []
    groups = yaml.safe_load(made)["authentication"]["group-manager"]
    assert groups["admin-group"]["extension"]["acls"] == {
        "virtualClusters": [],
        "admin": True,
        "storageConfigs": ["data"],
    }
    assert groups["grouplist"][0]["extension"]["acls"]["storageConfigs"] == ["data", "models", "homes"]


def test_texts_in_blocks_end_where_their_text_does(snapshot: SnapshotAssertion) -> None:
    text = "a: |\n  one\n\n# c\nb: |+\n  two\n\nc: >-\n  three\n"
    root = read_spans(text)
    assert root is not None
    assert [text[one.start : one.end] for one in root.values] == ["|\n  one", "|+\n  two\n\n", ">-\n  three"]
    assert with_item("x:\n  a: |\n    one\n\n\n# c\n", ("x", "l"), "i") == snapshot


def test_rare_forms_are_edited_rightly_or_refused(snapshot: SnapshotAssertion) -> None:
    with pytest.raises(EditError, match="no command edits"):
        with_item("? a\n: b\n", ("l",), "i")
    assert with_item("a:\n- - x\n", ("l",), "i") == snapshot


def test_a_file_that_is_a_list_is_refused() -> None:
    with pytest.raises(EditError, match="no mapping"):
        with_item("- a\n", ("l",), "i")


def test_a_list_in_a_list_is_not_taken_apart() -> None:
    with pytest.raises(EditError):
        without_item("a:\n- - x\n  - y\n", ("a", 0), 0)


def test_lines() -> None:
    assert with_lines("a", 1, ["b"]) == "a\nb"
    assert with_lines("a\r\nc\r\n", 1, ["b"]) == "a\r\nb\r\nc\r\n"
    assert without_lines("a\nb", 2, 3) == "a"
    assert without_lines("a\nb\n", 2, 3) == "a\n"
    assert without_lines("a", 0, 1) == ""


@pytest.mark.parametrize("word", ["data", "true", "false", "nfsvers=4.1", "10Ti", "/share/data", "$token", "a@b"])
def test_plain_words(word: str) -> None:
    assert scalar(word) == word
    assert yaml.safe_load(f"[{word}]") == [word == "true" if word in ("true", "false") else word]


@pytest.mark.parametrize(
    "word",
    ["", "1", "010", "1e3", "yes", "null", "~", "2026-01-01", "a b", "a: b", "#a", "é", "a,b", "'", '"', "- a", ".5"],
)
def test_other_words_are_quoted(word: str) -> None:
    assert scalar(word) == json.dumps(word, ensure_ascii=False)
    assert yaml.safe_load(flow({"a": word, "b": [word]})) == {"a": word, "b": [word]}


def test_no_secret_is_in_a_difference(tmp_path: Path) -> None:
    before = (
        "storages:\n  - {name: s, type: smb, server: nas, share-name: s, username: u, password: 'pl''nted \\secret'}\n"
        '  - {name: t, type: smb, server: nas, share-name: t, username: u, password: "a\\x2db-pl4nted"}\n'
        "openpai-runtime: {access-key: k3y-pl4nted}\n"
        "# once k3y-pl4nted\n"
    )
    after = added(before, ENTRY)
    services = load_site(write_site(tmp_path, services=before)).site.services
    shown = difference("f.yaml", before, after, (services, Services()))
    assert "+  - name: data" in shown
    assert "pl''nted" not in shown
    assert "pl4nted" not in shown
    assert shown.count("********") >= 2


BLOCK = """\
# ours
storages:
  - name: data   # the big one
    type: nfs
    server: nas   # old
    mount-options:
      - hard
      - nfsvers=4

  - {name: homes, type: smb, server: nas, password: pl4nted}   # theirs
other: 1
"""


def test_keys_of_a_storage_are_set_and_nothing_else_changes() -> None:
    made = changed(BLOCK, "data", {"server": "nas2", "path": "/a b", "mount-options": ("soft", "a=b")})
    assert made == (
        BLOCK.replace("server: nas   # old", "server: nas2   # old").replace(
            "    mount-options:\n      - hard\n      - nfsvers=4\n",
            '    mount-options: [soft, a=b]\n    path: "/a b"\n',
        )
    )
    assert changed(made, "data", {"server": "nas2"}) == made
    homes = changed(BLOCK, "homes", {"password": {"env": "NEW"}, "domain": "d"})
    assert homes == BLOCK.replace("password: pl4nted}", "password: {env: NEW}, domain: d}")
    assert changed(BLOCK.replace("\n", "\r\n"), "homes", {"domain": "d"}).count("\r\n") == BLOCK.count("\n")
    assert changed(BLOCK, "unknown", {"server": "x"}) == BLOCK


@pytest.mark.parametrize(
    "line",
    ["    server: &it nas", "    server: !x nas", "    mount-options: # ours\n      - hard"],
)
def test_a_value_that_is_more_than_itself_is_edited_by_hand(line: str) -> None:
    text = f"storages:\n  - name: data\n{line}\n"
    with pytest.raises(EditError):
        changed(text, "data", {"server": "nas2", "mount-options": ("a",)})
