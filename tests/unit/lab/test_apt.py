"""The box's apt configuration, rewritten for the machines."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.lab import apt
from pai_install.lab.apt import AptAccess, AptSource, default_sources, kept_options, read_box, rewritten_sources
from pai_install.lab.distribution import DEBIAN, UBUNTU

BOOKWORM = """
Types: deb
# a comment in between
URIs: https://mirror.example/debian
Suites: bookworm bookworm-updates bookworm-backports
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb deb-src
URIs: https://mirror.example/debian-security
Suites: bookworm-security
Components: main
Check-Valid-Until: no
"""


def test_deb822_suites_become_the_machines_release() -> None:
    found = rewritten_sources([("debian.sources", BOOKWORM)], "bookworm")
    assert [(source.uri, source.suites) for source in found] == [
        ("https://mirror.example/debian", ("trixie", "trixie-updates")),
        ("https://mirror.example/debian-security", ("trixie-security",)),
    ]


def test_options_of_a_source_stay() -> None:
    found = rewritten_sources([("debian.sources", BOOKWORM)], "bookworm")
    assert found[0].options == ()
    assert found[1].options == (("Check-Valid-Until", "no"),)
    assert "Check-Valid-Until: no\n" in found[1].stanza()


def test_one_line_form_with_options() -> None:
    text = (
        "# deb http://commented.example/debian bookworm main\n"
        "deb [arch=amd64 signed-by=/etc/apt/keyrings/corp.gpg] http://corp.example/debian bookworm main non-free\n"
        "deb-src http://corp.example/debian bookworm main\n"
    )
    found = rewritten_sources([("sources.list", text)], "bookworm")
    assert found == (AptSource("http://corp.example/debian", ("trixie",), "/etc/apt/keyrings/corp.gpg"),)


@pytest.mark.parametrize(
    "line",
    [
        "deb https://download.example/linux/debian bookworm stable",  # a vendor's archive: not component main
        "deb https://apt.vendor.example bookworm main",  # a vendor's archive with Debian's words
        "deb https://apt.example/debian cloud-bookworm main",
        "deb http://deb.example/debian bullseye main",
    ],
)
def test_foreign_archives_are_left_out(line: str) -> None:
    assert rewritten_sources([("x.list", line)], "bookworm") == default_sources()


def test_disabled_sources_are_left_out() -> None:
    text = BOOKWORM.replace("Components: main contrib", "Components: main\nEnabled: no")
    assert rewritten_sources([("debian.sources", text)], "bookworm") == default_sources()


def test_a_box_of_another_distribution_gets_debians_own_archives() -> None:
    ubuntu = "deb http://archive.ubuntu.example/ubuntu jammy main universe\n"
    found = rewritten_sources([("sources.list", ubuntu)], "jammy")
    assert found == default_sources()
    assert found[0].suites == ("trixie", "trixie-updates")


def test_a_debian_box_gets_ubuntus_own_archive_for_an_ubuntu(snapshot: SnapshotAssertion) -> None:
    found = rewritten_sources([("debian.sources", BOOKWORM)], "bookworm", "noble")
    assert found == default_sources("noble")
    assert found[0].stanza() == snapshot
    assert f"Signed-By: {UBUNTU.keyring}\n" in found[0].stanza()


def test_sources_of_an_ubuntu_box_become_those_of_another_ubuntu() -> None:
    lines = (
        "deb http://mirror.example/ubuntu jammy main restricted\n"
        "deb http://mirror.example/ubuntu jammy universe\n"
        "deb http://mirror.example/ubuntu jammy-security main universe\n"
    )
    found = rewritten_sources([("sources.list", lines)], "jammy", "noble")
    assert [(source.uri, source.suites, source.components) for source in found] == [
        ("http://mirror.example/ubuntu", ("noble",), "main universe"),
        ("http://mirror.example/ubuntu", ("noble-security",), "main universe"),
    ]


def test_security_alone_is_not_enough_to_build_a_machine() -> None:
    text = "deb http://x.example/debian-security bookworm-security main\n"
    assert rewritten_sources([("sources.list", text)], "bookworm") == default_sources()


def test_several_uris_and_repeats() -> None:
    text = BOOKWORM.replace(
        "URIs: https://mirror.example/debian\n", "URIs: https://a.example/debian http://b.example/debian\n"
    )
    found = rewritten_sources([("a.sources", text), ("b.sources", text)], "bookworm")
    assert [source.uri for source in found] == [
        "https://a.example/debian",
        "http://b.example/debian",
        "https://mirror.example/debian-security",
    ]


def test_a_key_written_into_the_stanza_is_that_of_the_boxs_release() -> None:
    text = BOOKWORM.replace(
        "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg",
        "Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mQINBF\n -----END PGP PUBLIC KEY BLOCK-----",
    )
    found = rewritten_sources([("debian.sources", text)], "bookworm")
    assert found[0].signed_by == DEBIAN.keyring


def test_stanza_and_line_of_a_source(snapshot: SnapshotAssertion) -> None:
    source = AptSource("http://x.example/debian", ("trixie", "trixie-updates"), "/k.gpg")
    assert source.stanza() == snapshot
    assert source.line(Path("/box.gpg")) == snapshot


DUMP = """APT::Architecture "amd64";
Acquire "";
Acquire::Check-Valid-Until "false";
Acquire::http "";
Acquire::http::Proxy "http://proxy.example:3128";
Acquire::https::CAInfo "/etc/ssl/corp.pem";
Acquire::Retries "5";
Acquire::Languages:: "none";
Acquire::GzipIndexes "true";
DPkg::Post-Invoke:: "rm -f /var/cache/apt/archives/*.deb";
"""


def test_only_options_about_reaching_an_archive_are_kept() -> None:
    assert kept_options(DUMP).splitlines() == [
        'Acquire::Check-Valid-Until "false";',
        'Acquire::http::Proxy "http://proxy.example:3128";',
        'Acquire::https::CAInfo "/etc/ssl/corp.pem";',
        'Acquire::Retries "5";',
    ]


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ran: object) -> Path:
    etc = tmp_path / "etc"
    (etc / "apt/sources.list.d").mkdir(parents=True)
    (etc / "apt/auth.conf.d").mkdir()
    (tmp_path / "usr/local/share/ca-certificates/corp").mkdir(parents=True)
    (etc / "os-release").write_text('ID=debian\nVERSION_CODENAME=bookworm\nID_LIKE="x"\n')
    (etc / "apt/sources.list.d/debian.sources").write_text(BOOKWORM)
    (etc / "apt/sources.list.d/old.list.disabled").write_text("deb http://old.example/debian bookworm main\n")
    (etc / "apt/auth.conf.d/corp.conf").write_text("machine mirror.example login me password secret\n")
    (tmp_path / "usr/local/share/ca-certificates/corp/root.crt").write_text("PEM")
    monkeypatch.setattr(apt, "run", ran)
    return tmp_path


def test_reading_a_box(box: Path) -> None:
    found = read_box(box)
    assert [source.uri for source in found.sources] == [
        "https://mirror.example/debian",
        "https://mirror.example/debian-security",
    ]
    assert found.certificates == {"root.crt": b"PEM"}
    assert found.files == {"/etc/apt/auth.conf.d/corp.conf": b"machine mirror.example login me password secret\n"}
    assert found.bootstrap.uri == "https://mirror.example/debian"


def test_reading_a_box_carries_its_own_keyring(box: Path) -> None:
    key = box / "etc/apt/keyrings/corp.gpg"
    key.parent.mkdir()
    key.write_bytes(b"KEY")
    (box / "etc/apt/sources.list.d/debian.sources").unlink()
    (box / "etc/apt/sources.list").write_text(
        "deb [signed-by=/etc/apt/keyrings/corp.gpg] http://corp.example/debian bookworm main\n"
    )
    assert read_box(box).files["/etc/apt/keyrings/corp.gpg"] == b"KEY"


def test_reading_a_box_without_apt_settings(box: Path) -> None:
    for path in (box / "etc/apt/sources.list.d").iterdir():
        path.unlink()
    (box / "etc/os-release").unlink()
    assert read_box(box).sources == default_sources()


def test_sources_file_has_one_stanza_per_archive() -> None:
    access = AptAccess(default_sources(), "", {}, {})
    assert access.sources_file().count("Types: deb\n") == 2
    assert access.sources_file().count("\n\n") == 1
