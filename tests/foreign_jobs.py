"""Jobs in the shapes of other projects' examples, of our own words: Volcano's with mpiexec, and training-operator's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

# the folder of the plugin `ssh`, and what a launcher of MPI needs of it
MPI_CHECK = """\
import os, pathlib, socket, time
found = sorted(path.name for path in pathlib.Path("/root/.ssh").iterdir() if not path.name.startswith("."))
print("keys", " ".join(found), flush=True)
for host in os.environ["VC_WORKER_HOSTS"].split(","):
    for _ in range(90):
        try:
            print("met", host, socket.gethostbyname(host), flush=True)
            break
        except OSError:
            time.sleep(1)
"""
# kind -> field of its roles, roles
KUBEFLOW: Mapping[str, tuple[str, Sequence[str]]] = {
    "XGBoostJob": ("xgbReplicaSpecs", ("Master", "Worker")),
    "PaddleJob": ("paddleReplicaSpecs", ("Worker",)),
    "JAXJob": ("jaxReplicaSpecs", ("Worker",)),
    "PyTorchJob": ("pytorchReplicaSpecs", ("Master", "Worker")),
    "TFJob": ("tfReplicaSpecs", ("PS", "Worker")),
}
_CONTAINERS = {"XGBoostJob": "xgboost", "PaddleJob": "paddle", "JAXJob": "jax", "PyTorchJob": "pytorch"}
_SMALL = {"cpu": "100m", "memory": "64Mi"}


def _pod(name: str, image: str, command: list[str], restart: str, **resources: str) -> dict[str, Any]:
    asks = {**_SMALL, **{key.replace("_", "/"): value for key, value in resources.items()}}
    container = {
        "name": name,
        "image": image,
        "command": command,
        "resources": {"requests": asks, "limits": asks},
    }
    return {"spec": {"restartPolicy": restart, "containers": [container]}}


def kubeflow_job(kind: str, image: str) -> str:
    """A job of training-operator in the namespace of its project."""
    field, roles = KUBEFLOW[kind]
    container = _CONTAINERS.get(kind, "tensorflow")
    specs = {
        role: {
            "replicas": 1,
            "restartPolicy": "Never",
            # a parameter server ends with the job
            "template": _pod(container, image, ["python3", "-c", f"print('{role} of {kind}')"], "Never"),
        }
        for role in roles
    }
    content = {
        "apiVersion": "kubeflow.org/v1",
        "kind": kind,
        "metadata": {"name": kind.lower(), "namespace": "kubeflow"},
        "spec": {field: specs},
    }
    return yaml.safe_dump(content, sort_keys=False)


def volcano_mpi(image: str) -> str:
    """A launcher and two workers with the plugins ssh and svc, and an empty document at the end."""
    launcher = _pod("launcher", image, ["python3", "-c", MPI_CHECK], "OnFailure")
    worker = _pod("worker", image, ["python3", "-c", "import time; time.sleep(3600)"], "OnFailure")
    content = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"generateName": "mpi-", "namespace": "default"},
        "spec": {
            "minAvailable": 3,
            "queue": "theirs",
            "plugins": {"ssh": [], "svc": [], "env": []},
            "tasks": [
                {
                    "replicas": 1,
                    "name": "launcher",
                    "policies": [{"event": "TaskCompleted", "action": "CompleteJob"}],
                    "template": launcher,
                },
                {"replicas": 2, "name": "worker", "template": worker},
            ],
        },
    }
    return f"{yaml.safe_dump(content, sort_keys=False)}---\n"
