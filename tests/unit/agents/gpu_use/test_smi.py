"""What nvidia-smi says, and what it means that it says nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path

from pai_install.agents.gpu_use.smi import FIELDS, FULL_QUERY, QUERY, REMAP_QUERY, Gpu, Smi, parse

# an idle H100 80GB HBM3 with driver 580.159.04. The UUID is another.
H100 = (
    "0, GPU-5f3c0000-0000-0000-0000-000000000001, 0, 00000000:00:06.0, 0, 81079, 81559, 34, 37, 72.72, 345, 2619, P0, "
    "0x0000000000000001, 0, 0, 5, 16, 16"
)
H100_ROWS = "GPU-5f3c0000-0000-0000-0000-000000000001, 0, 0, No, No"


def test_each_gpu_by_its_uuid() -> None:
    text = "0, GPU-11111111-2222, 37\n1, GPU-33333333-4444, 0\n"
    assert parse(text) == {"GPU-11111111-2222": Gpu("0", 37.0), "GPU-33333333-4444": Gpu("1", 0.0)}


def test_what_it_does_not_say_is_not_known() -> None:
    text = "0, GPU-1, [N/A]\n1, GPU-2, [Unknown Error]\n2, GPU-3, 101\n[GPU is lost]\nNo devices were found\n\n"
    assert parse(text) == {"GPU-1": Gpu("0", None), "GPU-2": Gpu("1", None), "GPU-3": Gpu("2", None)}


def program(folder: Path, text: str) -> list[str]:
    path = folder / "nvidia-smi"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return [str(path)]


def test_it_is_asked_for_all_gpus_at_once(tmp_path: Path) -> None:
    words = program(tmp_path, f'[ "$*" = "{" ".join(QUERY)}" ] && echo 0, GPU-1, 5')
    assert Smi(words).query() == {"GPU-1": Gpu("0", 5.0)}


def test_a_real_gpu_has_all_values(tmp_path: Path) -> None:
    answers = (
        f'case "$*" in "{" ".join(FULL_QUERY)}") echo "{H100}";; "{" ".join(REMAP_QUERY)}") echo "{H100_ROWS}";; esac'
    )
    smi = Smi(program(tmp_path, answers), full=True)
    (found,) = smi.query().values()
    assert (found.busy, found.bus) == (0.0, "0000:00:06.0")
    assert list(found.values) == [name for name in FIELDS if name != "pci.bus_id"]
    assert (found.values["power.draw"], found.values["clocks_throttle_reasons.active"]) == (72.72, 1.0)
    (rows,) = smi.remapped().values()
    assert rows == {"correctable": 0.0, "uncorrectable": 0.0, "pending": 0.0, "failure": 0.0}


def test_without_a_driver_nothing_is_known(tmp_path: Path) -> None:
    assert Smi([str(tmp_path / "none")]).query() == {}
    assert Smi(program(tmp_path, "echo 0, GPU-1, 5; exit 9")).query() == {}


def test_a_driver_that_hangs_is_asked_again_when_it_has_let_go(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    # longer than the program needs to begin
    smi = Smi(program(tmp_path, f"echo x >>{asked}; exec sleep 60"), timeout_s=5)
    assert smi.query() == {}
    assert smi.hangs is not None
    smi.hangs.wait(60)
    assert smi.query() == {}
    assert asked.read_text() == "x\nx\n"


def test_a_driver_hangs_until_it_answers_also_where_its_callers_can_be_killed(tmp_path: Path) -> None:
    hangs = tmp_path / "hangs"
    hangs.touch()
    smi = Smi(program(tmp_path, f"[ ! -e {hangs} ] || exec sleep 60; echo 0, GPU-1, 5"), timeout_s=0.3)
    assert smi.hanging_s == 0
    for seconds in (0.3, 0.6):
        assert smi.query() == {}
        assert smi.hangs is not None
        smi.hangs.wait(60)
        assert seconds <= smi.hanging_s < 60
    hangs.unlink()
    smi._timeout_s = 30
    assert smi.query() == {"GPU-1": Gpu("0", 5.0)}
    assert smi.hanging_s == 0


def test_while_it_hangs_it_is_not_asked(tmp_path: Path) -> None:
    smi = Smi(program(tmp_path, "echo 0, GPU-1, 5"))
    with subprocess.Popen(["sleep", "60"], text=True) as hanging:
        smi.hangs = hanging
        assert smi.query() == {}
        hanging.kill()
    assert smi.query() == {"GPU-1": Gpu("0", 5.0)}
