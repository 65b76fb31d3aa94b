"""Keys and known_hosts: checked with OpenSSH's own tools."""

from __future__ import annotations

import stat
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pai_install.lab import keys
from pai_install.lab.spec import LabMachine, LabSpec
from pai_install.system.proc import run
from tests.errors import raises

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHlrLte8k2cpbvnyy//XJJuu12ToFTD7cLQRGZHT3/az"


def test_key_pair_is_made_once_and_private(spec: LabSpec) -> None:
    assert keys.ensure_key_pair(spec.key_file)
    assert stat.S_IMODE(spec.key_file.stat().st_mode) == 0o600
    before = spec.key_file.read_bytes()
    assert not keys.ensure_key_pair(spec.key_file)
    assert spec.key_file.read_bytes() == before


def test_public_key_belongs_to_the_private_one(spec: LabSpec) -> None:
    keys.ensure_key_pair(spec.key_file)
    public = spec.key_file.with_name("lab_ssh_key.pub").read_text()
    assert keys.public_key(spec.key_file).split()[:2] == public.split()[:2]


def test_public_key_of_something_else_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("not a key")
    with raises("program-failed", "ssh-keygen"):
        keys.public_key(tmp_path / "key")


def test_host_key_is_made_once(tmp_path: Path) -> None:
    first = keys.ensure_host_key(tmp_path / "etc/ssh", "one")
    assert first.startswith("ssh-ed25519 ")
    assert keys.ensure_host_key(tmp_path / "etc/ssh", "one") == first


def test_openssh_finds_a_machine_by_address_port_and_name(spec: LabSpec) -> None:
    keys.write_known_hosts(spec, dict.fromkeys(spec.machines, KEY))
    for host in ("172.30.79.11", "[172.30.79.12]:2222", "one", "two"):
        assert KEY in run(["ssh-keygen", "-F", host, "-f", spec.known_hosts]).stdout, host
    assert not run(["ssh-keygen", "-F", "172.30.79.13", "-f", spec.known_hosts], check=False).ok


def test_writing_the_same_keys_again_changes_nothing(spec: LabSpec) -> None:
    found = dict.fromkeys(spec.machines, KEY)
    assert keys.write_known_hosts(spec, found)
    assert not keys.write_known_hosts(spec, found)


def test_a_new_key_replaces_the_old_and_strangers_stay(spec: LabSpec) -> None:
    spec.state_dir.mkdir(parents=True)
    strangers = "# a remark\ngit.example ssh-rsa AAAA\n\n|1|hashed= ssh-rsa BBBB\n"
    spec.known_hosts.write_text(strangers + "172.30.79.11 ssh-ed25519 OLD\n")
    keys.write_known_hosts(spec, dict.fromkeys(spec.machines, KEY))
    text = spec.known_hosts.read_text()
    assert text.startswith(strangers)
    assert "OLD" not in text


@given(st.lists(st.sampled_from(["a.example ssh-rsa A", "# b", "", "172.30.79.99 x y"])))
def test_forgetting_gives_back_what_was_there(lines: list[str]) -> None:
    before = "".join(f"{line}\n" for line in lines)
    machine = LabMachine("one", IPv4Address("172.30.79.11"))
    after = keys.known_hosts_text(before, {machine: KEY})
    assert keys.known_hosts_text(after, {}, ["172.30.79.11"]) == before


def test_ssh_checks_host_keys_and_uses_only_the_labs_key(spec: LabSpec) -> None:
    words = keys.ssh_command(spec, spec.machines[1], ["uname", "-r"])
    assert "StrictHostKeyChecking=yes" in words
    assert f"UserKnownHostsFile={spec.known_hosts}" in words
    assert "IdentitiesOnly=yes" in words
    assert words[words.index("-p") + 1] == "2222"
    assert words[-4:] == ["pai@172.30.79.12", "--", "uname", "-r"]


def test_ssh_without_a_command_opens_a_shell(spec: LabSpec) -> None:
    words = keys.ssh_command(replace(spec, user="root"), spec.machines[0])
    assert words[-1] == "root@172.30.79.11"
