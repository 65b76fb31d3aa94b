"""Where tasks were executed, read from what Ansible writes."""

from __future__ import annotations

from pathlib import Path

from tests.perf.engine_tasks import newest_log, tasks_elsewhere, tasks_on

LOG = """
PLAY [Join the workers] ********************************************************

TASK [worker : Join | Create a join token on the control plane] ****************
ok: [new -> master(10.0.0.1)]

TASK [worker : Join | Check the token] ***************************************
ok: [new]

TASK [worker : Join | Sign it on the control plane] ****************************
changed: [new -> master(10.0.0.1)]

TASK [worker : Reach the registry] *********************************************
skipping: [new -> master(10.0.0.1)]
fatal: [other]: UNREACHABLE! => {"changed": false, "unreachable": true}
fatal: [new -> master2]: FAILED! => {"changed": false}
...ignoring
changed: [master] => (item=one)
changed: [master] => (item=two)

PLAY RECAP *********************************************************************
new                        : ok=2    changed=1    unreachable=0    failed=0    skipped=1    rescued=0    ignored=1
"""


def test_a_task_counts_where_it_was_executed() -> None:
    assert tasks_elsewhere(LOG, "new") == {"master": 4, "other": 1, "master2": 1}


def test_of_another_machine_the_newcomer_is_one_of_the_others() -> None:
    assert tasks_elsewhere(LOG, "master") == {"new": 1, "other": 1, "master2": 1}


def test_a_check_on_the_controller_host_is_no_task_of_the_machine() -> None:
    spec = "TASK [worker : Validating arguments against arg spec 'main'] ***\nok: [new]\n"
    assert tasks_on(LOG + spec) == {"master": 4, "other": 1, "master2": 1}


def test_the_newest_run_counts(tmp_path: Path) -> None:
    for name in ("20260102T000000Z", "20260101T000000Z"):
        folder = tmp_path / ".pai" / "runs" / name
        folder.mkdir(parents=True)
        (folder / "ansible.log").write_text(name)
    assert newest_log(tmp_path) == "20260102T000000Z"
