"""Files of jobs: what they are read as, and where and how each wrong one is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.jobs.job_file import MAX_BYTES
from pai_install.jobs.kubernetes import KubernetesFile
from pai_install.jobs.model import Job, JobMount, JobPort, PullLogin
from pai_install.jobs.read import JobReading, read_job, read_job_text

FILES = Path(__file__).parent / "files"
V1 = """\
{
  "jobName": "mnist",
  "image": "example/tf:1",
  "retryCount": 0,
  "taskRoles": [
    {
      "name": "worker",
      "taskNumber": 2,
      "cpuNumber": 1,
      "memoryMB": 1000,
      "gpuNumber": 1,
      "command": "run"
    }
  ]
}
"""
V2 = """\
protocolVersion: 2
name: mnist
type: job
prerequisites:
  - {type: dockerimage, name: image, uri: python}
taskRoles:
  worker:
    instances: 2
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 1000, gpu: 1}
    commands:
      - run
defaults:
  virtualCluster: default
extras:
  submitFrom: web
"""
POD = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: train
spec:
  parallelism: 2
  template:
    spec:
      containers:
        - name: main
          image: python
          resources:
            requests: {cpu: 1, memory: 1Gi, nvidia.com/gpu: 1}
            limits: {nvidia.com/gpu: 1}
"""
# what is wrong: the file, the text to replace, what with, the place, and words of the message or the remedy
WRONG = {
    "v1: results elsewhere": (V1, '"retryCount": 0', '"outputDir": "s3://h/x"', "4:3", "write hdfs://HOST:PORT/FOLDER"),
    "v1: data out of HDFS": (V1, '"retryCount": 0', '"dataDir": "hdfs://h:9000/x/../y"', "4:3", "without '..'"),
    "v1: all of HDFS": (V1, '"retryCount": 0', '"codeDir": "hdfs://h:9000/"', "4:3", "names no folder"),
    "v1: login on HDFS": (V1, '"retryCount": 0', '"authFile": "hdfs://h/x"', "4:3", "prerequisites[].auth"),
    "v1: old ending": (V1, '"retryCount": 0', '"killAllOnCompletedTaskNumber": 1', "4:3", "minSucceededTaskCount"),
    "v1: unknown key": (V1, '"retryCount"', '"retryCuont"', "4:3", "did you mean retryCount?"),
    "v1: fancy retries": (V1, '"retryCount": 0', '"retryCount": -2', "4:3", "write -1 to 1000"),
    "v1: too little memory": (V1, '"memoryMB": 1000', '"memoryMB": 99', "10:7", "write 100 to"),
    "v1: no instances": (V1, '"taskNumber": 2', '"taskNumber": 0', "8:7", "write 1 to 10000"),
    "v1: half a GPU": (V1, '"gpuNumber": 1', '"gpuNumber": 0.5', "11:7", "not a whole number"),
    "v1: shared memory": (V1, '"command"', '"shmMB": 2000, "command"', "12:7", "more than memoryMB"),
    "v1: no command": (V1, '"run"', '" "', "12:7", "is empty"),
    "v1: role with a dot": (V1, '"worker"', '"a.b"', "7:7", "names of variables"),
    "v1: job with a sign first": (V1, '"mnist"', '"-mnist"', "2:3", "write mnist"),
    "v1: job with a digit first": (V1, '"mnist"', '"024"', "2:3", "write job-024"),
    "v1: long name": (V1, '"mnist"', f'"{"a" * 60}"', "2:3", "write aaaa"),
    "v1: variable of ours": (V1, '"retryCount": 0', '"jobEnvs": {"PAI_X": 1}', "4:15", "set by the cluster"),
    "v1: no variable": (V1, '"retryCount": 0', '"jobEnvs": {"a-b": 1}', "4:15", "no name of a variable"),
    "v1: ports beyond": (
        V1, '"command"', '"portList": [{"label": "w", "beginAt": 65535, "portNumber": 2}], "command"', "12:35",
        "beyond 65535",
    ),
    "v1: no roles": (V1, V1[V1.index("[") : V1.rindex("]") + 1], "[]", "5:3", "is empty"),
    "v1: not closed": (V1, "  ]\n}\n", "", "5:16", "bracket that opens here is not closed"),
    "v1: two unnamed roles": (V1, '"name": "worker",', '"cpuNumber": 1}, {', "6:5", "is required"),
    "v2: other version": (V2, "Version: 2", "Version: 3", "1:1", "not one of 2"),
    "v2: name": (V2, "name: mnist", "name: a.b", "2:1", "use letters"),
    "v2: sign last": (V2, "name: mnist", "name: mnist_", "2:1", "write mnist"),
    "v2: no type": (V2, "type: job\n", "", "1:1", "type: is required"),
    "v2: unknown key": (V2, "dockerImage", "dokerImage", "9:5", "did you mean dockerImage?"),
    "v2: image by its address": (V2, "dockerImage: image", "dockerImage: a/b", "9:5", "is no dockerimage"),
    "v2: no such image": (V2, "uri: python", "uri: <image>", "5:38", "is no image"),
    "v2: no uri": (V2, ", uri: python", "", "5:5", "needs uri"),
    "v2: role": (V2, "  worker:", "  2nd:", "7:3", "no digit first"),
    "v2: role with a sign last": (V2, "  worker:", "  worker_:", "7:3", "write worker"),
    "v2: no resources": (V2, "{cpu: 1, memoryMB: 1000, gpu: 1}", "{cpu: 1, gpu: 1}", "10:5", "is required"),
    "v2: no cores": (V2, "cpu: 1", "cpu: 0", "10:27", "no number of cores"),
    "v2: ports": (V2, "gpu: 1}", "gpu: 1, ports: {a-b: 1}}", "10:67", "no digit first"),
    "v2: retries": (V2, "type: job", "type: job\njobRetryCount: -1", "4:1", "write 0 to"),
    "v2: no commands": (V2, "    commands:\n      - run\n", "    commands: []\n", "11:5", "is empty"),
    "v2: commands as text": (V2, "    commands:\n      - run\n", "    commands: run\n", "11:5", "a list is expected"),
    "v2: no such parameter": (V2, "- run", "- run <% $parameters.x %>", "12:13", "there is no $parameters"),
    "v2: no such secret": (V2, "- run", "- |\n        run\n        <% $secrets.x %>", "14:9", "there is no $secrets"),
    "v2: open reference": (V2, "- run", "- run <% $parameters.x", "12:13", "is not closed"),
    "v2: odd reference": (V2, "- run", "- run <%# x %>", "12:13", "is not understood"),
    "v2: infiniband": (V2, "instances: 2", "extraContainerOptions: {infiniband: true}", "8:29", "no InfiniBand"),
    "v2: ending": (V2, "instances: 2", "completion: {minFailedInstances: 0}", "8:18", "write 1 or more, or -1"),
    "v2: deployment": (V2, "virtualCluster: default", "deployment: prod", "14:3", "no deployment"),
    "v2: pinned": (
        V2, "submitFrom: web", "hivedScheduler: {taskRoles: {worker: {pinnedCellId: 'a: b'}}}", "16:41", "not a name",
    ),
    "v2: nodes that refuse": (
        V2, "submitFrom: web", "hivedScheduler: {ignoreK8sSuggestedNodes: true}", "16:20", "write false",
    ),
    "v2: priority": (V2, "submitFrom: web", "hivedScheduler: {jobPriorityClass: high}", "16:20", "crit, prod, test"),
    "v2: role of hived": (V2, "submitFrom: web", "hivedScheduler: {taskRoles: {wroker: {}}}", "16:32", "mean worker?"),
    "v2: gang": (V2, "submitFrom: web", "gangAllocation: maybe", "16:3", "neither true nor false"),
    "v2: all storages": (V2, "submitFrom: web", "storages: []", "16:3", "name each"),
    "v2: mounted at the top": (V2, "submitFrom: web", "storages: [{name: a, mountPath: /}]", "16:24", "absolute path"),
    "v2: mounted twice": (V2, "submitFrom: web", "storages: [{name: a}, {name: a}]", "16:26", "another mountPath"),
    "v2: ssh": (
        V2, "submitFrom: web", "com.microsoft.pai.runtimeplugin: [{plugin: ssh, parameters: {jobssh: true}}]", "16:64",
        "no ssh",
    ),
    "v2: plugin": (V2, "submitFrom: web", "com.microsoft.pai.runtimeplugin: [{plugin: gti}]", "16:38", "ssh, cmd"),
    "v2: extras that are nearly known": (V2, "submitFrom: web", "gangAlocation: true", "16:3", "mean gangAllocation?"),
    "v2: tensorboard": (V2, "submitFrom: web", "tensorBoard: {randomStr: x}", "16:3", "not set up"),
    "v2: data on HDFS": (V2, "taskRoles:", "  - {type: data, name: d, uri: [hdfs://x]}\ntaskRoles:", "6:27", "no HDFS"),
    "v2: a circle": (
        V2.replace("instances: 2", "prerequisites: [a]"), "taskRoles:",
        "  - {type: script, name: a, require: [b]}\n  - {type: script, name: b, require: [a]}\ntaskRoles:", "7:29",
        "requires itself",
    ),
    "v2: a port that is none": (V2, "submitFrom: web", "pai-install: {web-port: 65536}", "16:17", "write 1 to 65535"),
    "v2: two files": (V2, "extras:\n", "---\nextras:\n", "16:1", "a second begins"),
    "v2: key twice": (V2, "type: job", "type: job\nname: other", "4:1", "given twice"),
    "v2: a tab": (V2, "    instances", "\tinstances", "8:1", "indent with spaces"),
    "kubernetes: kind": (POD, "kind: Job", "kind: Deployment", "2:1", "is no job"),
    "kubernetes: version": (POD, "batch/v1", "batch/v1beta1", "1:1", "write batch.volcano.sh/v1alpha1 or batch/v1"),
    "kubernetes: prefix": (POD, "name: train", "generateName: Train_", "4:3", "write train"),
    "kubernetes: name": (POD, "name: train", "name: Train_1", "4:3", "write train-1"),
    "kubernetes: devices": (POD, "limits: {nvidia.com/gpu: 1}", "limits: {nvidia.com/gpu: 2}", "13:45", "2 are the"),
    "kubernetes: no limit": (POD, "            limits: {nvidia.com/gpu: 1}\n", "", "13:45", "and no limit"),
    "kubernetes: quantity": (POD, "memory: 1Gi", "memory: 1Gib", "13:32", "no amount of memory"),
    "kubernetes: pods": (POD, "parallelism: 2", "parallelism: many", "6:3", "no number of pods"),
    "kubernetes: containers": (POD, "containers:", "container:", "8:5", "needs a list of containers"),
    "kubernetes: no template": (POD, "  template:", "  tmplate:", "5:1", "template is required"),
    "nothing": (V2, V2, "", "1:1", "is empty"),
    "a list": (V2, V2, "- a\n", "1:1", "a job is expected"),
    "something else": (V2, V2, "a: b\n", "1:1", "protocolVersion: 2"),
}  # fmt: skip


def read(text: str) -> JobReading:
    """The text as the file job."""
    return read_job_text(text, Path("job"))


def job(reading: JobReading) -> Job:
    """The job of a file without errors."""
    assert isinstance(reading.job, Job), reading.problems
    return reading.job


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told_at_its_place(name: str) -> None:
    text, old, new, place, words = WRONG[name]
    assert old in text
    reading = read(text.replace(old, new, 1))
    errors = [problem for problem in reading.problems if problem.is_error]
    assert reading.job is None
    told = [f"{one.line}:{one.column} {one.path}: {one.message} ({one.remedy})" for one in errors]
    assert any(one.startswith(f"{place} ") and words in one for one in told), told
    assert all(one.code.startswith("job.") for one in reading.problems)


@pytest.mark.parametrize("text", [V1, V2, POD], ids=["v1", "v2", "kubernetes"])
def test_what_the_wrong_ones_are_made_of_is_right(text: str) -> None:
    assert read(text).problems == ()
    assert read(text.replace("\n", "\r\n")).job == read(text).job is not None


def test_a_code_folder_elsewhere_is_a_warning() -> None:
    reading = read(V1.replace('"retryCount": 0', '"codeDir": "/home/x"'))
    assert reading.job is not None
    assert [(one.line, one.column, one.code) for one in reading.problems] == [(4, 3, "job.no-effect")]


def test_a_web_page_has_a_port() -> None:
    assert job(read(V2)).web_port == 0
    assert job(read(V2.replace("submitFrom: web", "pai-install: {web-port: 8888}"))).web_port == 8888


def test_an_ssh_server_has_a_port_and_a_job_of_people_the_limit_of_notebooks() -> None:
    assert (job(read(V2)).ssh_port, job(read(V2)).notebook) == (0, False)
    found = job(read(V2.replace("submitFrom: web", "pai-install: {ssh-port: 2222, notebook: true}")))
    assert (found.ssh_port, found.notebook) == (2222, True)


def test_notes_of_clients_in_extras_are_warnings() -> None:
    notes = "sdk.plugins: []\n  tags: [py-sdk]\n  editor: {version: 0.3.2}"
    reading = read(V2.replace("submitFrom: web", notes))
    assert job(reading) == job(read(V2))
    found = [(one.severity, one.line, one.path, one.code) for one in reading.problems]
    places = [(16, "extras.sdk.plugins"), (17, "extras.tags"), (18, "extras.editor")]
    assert sorted(found) == sorted(("warning", line, path, "job.no-effect") for line, path in places)


def test_the_seeds_single_job() -> None:
    reading = read_job(FILES / "single-v1.json")
    (role,) = job(reading).roles
    assert (role.name, role.instances, role.resources.gpus) == ("taskrole", 1, 2)
    assert role.command == "python $PAI_JOB_NAME/train.py"
    assert [(one.line, one.column, one.code) for one in reading.problems] == [
        (5, 9, "job.missing"),
        (10, 32, "job.escape"),
    ]


def test_the_seeds_parameter_server() -> None:
    reading = read_job(FILES / "ps-worker-v1.json")
    ps, worker = job(reading).roles
    assert job(reading).gang
    assert (ps.instances, ps.resources.gpus, worker.instances, worker.resources.gpus) == (2, 0, 2, 4)
    hosts = "--ps_hosts=$PAI_TASK_ROLE_ps_server_HOST_LIST --worker_hosts=$PAI_TASK_ROLE_worker_HOST_LIST"
    assert worker.command == f"python train.py {hosts} --job_name=worker"
    assert (worker.min_failed, worker.min_succeeded) == (1, 2)


def test_all_of_protocol_2() -> None:
    found = job(read_job(FILES / "full-v2.yaml"))
    worker, ps = found.roles
    assert (found.virtual_cluster, found.priority, found.retries, found.gang) == ("research", "prod", 2, True)
    assert found.mounts == (JobMount("team", "/mnt/team"), JobMount("sets", "/data/sets"))
    assert (worker.resources.sku, worker.resources.shm_mb, ps.resources.shm_mb) == ("a100", 1024, 256)
    assert (worker.min_failed, worker.min_succeeded, worker.retries) == (None, 1, 3)
    assert (ps.min_failed, ps.min_succeeded) == (1, 1)
    assert worker.ports == (JobPort("tensorboard", 1),)
    assert worker.login == PullLogin("registry.example.com", "robot", "open-sesame")
    assert "open-sesame" not in repr(found)
    assert worker.confidential
    assert not ps.confidential
    assert ps.command == "before\nserve\nafter"
    lines = worker.command.splitlines()
    order = ["install tools", "curl -O https://example.com/digits.tgz", "echo ready"]
    order += ["train --rate 0.10 --data https://example.com/digits.tgz", "upload --token hunter2", "remove tools"]
    assert [line for line in lines if line in order] == order


def test_a_secret_in_a_parameter_makes_a_command_confidential() -> None:
    text = V2.replace("- run", "- run <% $parameters.p %>").replace(
        "taskRoles:", "parameters: {p: x<% $secrets.s %>}\nsecrets: {s: hush}\ntaskRoles:"
    )
    (role,) = job(read(text)).roles
    assert (role.command, role.confidential) == ("run xhush", True)


def test_numbers_of_protocol_1() -> None:
    text = V1.replace('"retryCount": 0', '"retryCount": -1, "gpuType": "a100", "jobEnvs": {"LR": 0.10}')
    found = job(read(text.replace('"command"', '"minFailedTaskCount": null, "minSucceededTaskCount": 1, "command"')))
    (role,) = found.roles
    assert (found.retries, role.resources.sku, dict(role.environment)) == (None, "a100", {"LR": "0.10"})
    assert (role.min_failed, role.min_succeeded) == (1, 1)


def test_no_failure_ends_a_job_of_protocol_2_by_minus_one() -> None:
    text = V2.replace("instances: 2", "completion: {minFailedInstances: -1, minSucceededInstances: -1}")
    (role,) = job(read(text)).roles
    assert (role.min_failed, role.min_succeeded) == (None, None)


def test_variables_that_no_one_sets_are_told() -> None:
    reading = read(
        V2.replace("- run", "- run $PAI_DATA_DIR $PAI_TASK_INDEX ${PAI_HOST_IP_worker_1} $PAI_HOST_IP_worker_$i")
    )
    assert [(one.severity, one.code) for one in reading.problems] == [("warning", "job.variable")]
    assert "PAI_DATA_DIR" in reading.problems[0].message


def test_what_has_no_effect_is_told() -> None:
    plugin = "com.microsoft.pai.runtimeplugin: [{plugin: ssh, parameters: {jobssh: true}}]"
    reading = read(V2.replace("instances: 2", "instances: 1").replace("submitFrom: web", plugin))
    assert job(reading).instances == 1
    assert [one.severity for one in reading.problems] == ["warning"]


def test_kubernetes_objects_are_kept() -> None:
    found = read_job(FILES / "volcano.yaml")
    assert isinstance(found.job, KubernetesFile)
    (one,) = found.job.jobs
    assert (one.kind.name, one.name, one.queue) == ("Job", "tf-ps", "")
    assert [(role.name, role.instances, role.cpu_millis, dict(role.devices)) for role in one.roles] == [
        ("ps", 2, 500, {}),
        ("worker", 2, 2000, {"nvidia.com/gpu": 1}),
    ]
    assert one.content["spec"]["plugins"] == {"svc": [], "env": []}
    assert [other.content["data"] for other in found.job.beside] == [{"rate": "0.1"}]


KUBEFLOW = """\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: tf}
spec:
  runPolicy: {schedulingPolicy: {queue: research}}
  tfReplicaSpecs:
    PS: {replicas: 2, template: {spec: {containers: [{name: tensorflow, image: tf}]}}}
    Worker: {replicas: 3, template: {spec: {containers: [{name: tensorflow, image: tf}]}}}
"""
JOBSET = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: js, labels: {kueue.x-k8s.io/queue-name: research}}
spec:
  replicatedJobs:
    - name: w
      replicas: 2
      template: {spec: {parallelism: 3, template: {spec: {containers: [{name: a, image: b}]}}}}
"""
BARE = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a, image: b}]}\n"


@pytest.mark.parametrize(
    ("text", "roles", "queue"),
    [
        (KUBEFLOW, [("PS", 2), ("Worker", 3)], "research"),
        (JOBSET, [("w", 6)], "research"),
        (POD, [("train", 2)], ""),
        (BARE, [("p", 1)], ""),
    ],
    ids=["TFJob", "JobSet", "Job", "Pod"],
)
def test_kinds_of_kubernetes(text: str, roles: list[tuple[str, int]], queue: str) -> None:
    reading = read(text)
    assert isinstance(reading.job, KubernetesFile), reading.problems
    assert [(role.name, role.instances) for role in reading.job.jobs[0].roles] == roles
    assert reading.job.jobs[0].queue == queue


def test_only_what_goes_with_a_job(snapshot: SnapshotAssertion) -> None:
    reading = read("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n")
    assert [one.message for one in reading.problems] == snapshot


def test_a_file_that_is_not_there_or_too_large(tmp_path: Path) -> None:
    assert read_job(tmp_path / "no.yaml").problems[0].message == "does not exist"
    (tmp_path / "large.yaml").write_text("# " + "x" * MAX_BYTES)
    assert read_job(tmp_path / "large.yaml").problems[0].code == "job.file-size"


@pytest.mark.parametrize(
    "ending", ["---\n", "\n---\n# the end\n", "\n...\n---\n\n---\n", "---\nnull\n", "--- ~ # nothing\n"]
)
def test_an_empty_document_is_nothing(ending: str) -> None:
    """Four of Volcano's own examples end with a separator, and kubectl takes them."""
    assert job(read(f"{V2.rstrip()}\n{ending}")) == job(read(V2))


def test_more_instances_in_an_ending_than_there_are(subtests: pytest.Subtests) -> None:
    """HiveD's own demo wants six successes of two instances, and OpenPAI ran it."""
    for text in (
        V2.replace("instances: 2", "instances: 2\n    completion: {minFailedInstances: 3, minSucceededInstances: 6}"),
        V1.replace('"command"', '"minFailedTaskCount": 3, "minSucceededTaskCount": 6, "command"', 1),
    ):
        with subtests.test(text[:20]):
            found = read(text)
            role = job(found).roles[0]
            assert (role.min_failed, role.min_succeeded) == (None, role.instances)
            assert [one.severity for one in found.problems if one.code == "job.contradiction"] == ["warning"] * 2


@pytest.mark.parametrize(
    ("api", "kind"),
    [
        ("batch/v1", "CronJob"),
        ("batch.volcano.sh/v1alpha1", "CronJob"),
        ("flow.volcano.sh/v1alpha1", "JobFlow"),
        ("flow.volcano.sh/v1alpha1", "JobTemplate"),
        ("trainer.kubeflow.org/v1alpha1", "TrainJob"),
    ],
)
def test_kinds_that_no_site_runs_are_refused_with_a_remedy(api: str, kind: str, tmp_path: Path) -> None:
    text = f"apiVersion: {api}\nkind: {kind}\nmetadata: {{name: nightly}}\nspec: {{}}\n"
    (problem,) = read_job_text(text, tmp_path / "job.yaml").problems
    assert (problem.code, problem.line, problem.is_error) == ("job.kind", 2, True)
    assert "submit" in problem.remedy or "write it as" in problem.remedy


@pytest.mark.parametrize(
    ("kind", "roles"),
    [("XGBoostJob", "xgbReplicaSpecs"), ("PaddleJob", "paddleReplicaSpecs"), ("JAXJob", "jaxReplicaSpecs")],
)
def test_jobs_of_the_training_operator_are_read(kind: str, roles: str, tmp_path: Path) -> None:
    template = "{spec: {containers: [{name: a, image: b, resources: {limits: {nvidia.com/gpu: 2}}}]}}"
    text = f"apiVersion: kubeflow.org/v1\nkind: {kind}\nmetadata: {{name: train}}\n"
    text += f"spec: {{{roles}: {{Worker: {{replicas: 3, template: {template}}}}}}}\n"
    job = read_job_text(text, tmp_path / "job.yaml").job
    assert isinstance(job, KubernetesFile)
    assert [(role.name, role.instances, dict(role.devices)) for role in job.jobs[0].roles] == [
        ("Worker", 3, {"nvidia.com/gpu": 2})
    ]
