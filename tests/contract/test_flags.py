"""Every flag that we give to a foreign program is in the help text of the oldest version of it that we meet."""

from __future__ import annotations

import pytest

from tests.flags.found import OURS, Line, in_shell, lines, unwrapped
from tests.flags.texts import fixtures, missing

# what the code itself gives to newer versions alone: (program, flag) -> where it looks
NEWER = {
    ("dockerd", "--validate"): "roles/container_runtime/tasks/docker_config.yml asks for Docker 23",
}
# what a program takes and no longer tells
UNTOLD = {
    ("systemctl", "--no-legend"): "--legend=no since systemd 248, which keeps the old name",
}
# of the shell itself
BUILTINS = {"command", "for", "read", "set"}
FOUND = [line for line in lines() if line.flags and line.program not in {*BUILTINS, OURS}]


@pytest.mark.parametrize("line", FOUND, ids=lambda line: f"{line.place}-{line.program}")
def test_the_oldest_version_has_every_flag(line: Line) -> None:
    assert line.program in {name.partition("-")[0] for name in fixtures()} | fixtures().keys(), (
        f"{line.place}: {' '.join(line.words)}: put the help text of {line.program} into tests/flags/text, or say in "
        "tests/flags/found.py which program these words go to"
    )
    absent = [flag for flag in missing(line) if (line.program, flag) not in NEWER | UNTOLD]
    assert not absent, (
        f"{line.place}: the help in tests/flags/text of {' '.join(line.words)} has no {', '.join(absent)}"
    )


def test_the_walk_finds_what_it_should() -> None:
    """Of each kind of source one that is known to be there."""
    found = {(line.place.partition(":")[0], line.program) for line in FOUND}
    assert {
        ("playbooks/library/pai_node_check.py", "docker"),
        ("playbooks/library/pai_node_check.py", "ctr"),
        ("playbooks/library/pai_join_token.py", "kubeadm"),
        ("installer/pai_install/health/collect/collector.py", "nvidia-smi"),
        ("installer/pai_install/cluster/calls.py", "kubectl"),
        ("roles/api_proxy/tasks/main.yml", "haproxy"),
        ("roles/api_proxy/templates/pai-api-proxy.service.j2", "haproxy"),
        ("roles/container_runtime/tasks/docker_config.yml", "dockerd"),
        ("roles/container_runtime/files/nvidia-devices.sh", "nvidia-modprobe"),
        ("playbooks/module_utils/pai_packages.py", "apt-get"),
        ("roles/pod_forwarding/templates/pod-forwarding.sh.j2", "nft"),
        ("roles/pod_forwarding/templates/pod-forwarding.sh.j2", "iptables"),
    } <= found


@pytest.mark.parametrize(
    ("words", "absent"),
    [
        (("docker", "run", "--rm", "--quiet", "busybox"), ("--quiet",)),  # Docker 23 has it
        (("dockerd", "--validate"), ("--validate",)),
        (("/usr/local/bin/ctr", "--namespace", "k8s.io", "images", "pull", "--hosts-dir", "x"), ()),
        (("ctr", "images", "pull", "--no-such-flag"), ("--no-such-flag",)),
        (("docker", "run", "--rm", "{image}", "program", "--its-own"), ()),
        (("systemctl", "show", "--property=Id", "--", "--unit"), ()),
        (("no-such-program", "--flag"), ("--flag",)),
    ],
)
def test_what_counts_as_there(words: tuple[str, ...], absent: tuple[str, ...]) -> None:
    assert missing(Line("here", words)) == absent


def test_words_of_a_known_verb_are_held_against_it_alone() -> None:
    """`kubeadm reset` has --skip-phases and --force; `upgrade node` has only the first."""
    words = ("kubeadm", "upgrade", "node", "--skip-phases=x", "--force")
    assert missing(Line("here", words, completed=True)) == ("--force",)
    assert missing(Line("here", (words[0], *words[3:]), completed=True)) == ()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("rm", "-f", "x"), [("rm", "-f", "x")]),
        (("/usr/bin/timeout", "60", "rm", "-f", "60"), [("/usr/bin/timeout", "60"), ("rm", "-f", "60")]),
        (("timeout", "--foreground", "2.5s", "rm", "-f"), [("timeout", "--foreground", "2.5s"), ("rm", "-f")]),
        (("env", "A=b", "timeout", "1", "rm"), [("env", "A=b"), ("timeout", "1"), ("rm",)]),
        (("env", "A=b"), [("env", "A=b")]),
    ],
)
def test_what_a_wrapper_runs_is_a_command_line_of_its_own(words: tuple[str, ...], found: list[tuple[str, ...]]) -> None:
    assert [line.words for line in unwrapped(Line("here", words))] == found


@pytest.mark.parametrize(
    ("text", "programs"),
    [
        ('elif [ "$pause" -lt 900 ]; then rm -f x', ["rm"]),
        ("until ls -d x; do sleep 1; done", ["ls", "sleep"]),
    ],
)
def test_a_condition_of_the_shell_is_no_program(text: str, programs: list[str]) -> None:
    assert [line.program for line in in_shell("here", text) if line.program != "done"] == programs


@pytest.mark.parametrize("name", fixtures())
def test_a_text_says_where_it_is_from(name: str) -> None:
    from tests.flags.texts import TEXTS  # noqa: PLC0415 - here alone

    first = (TEXTS / f"{name}.txt").read_text(encoding="utf-8").partition("\n")[0]
    assert first.startswith("# "), first
