"""A client that runs kubectl, for all programs on machines: path, kubeconfig, timeouts, errors."""

from __future__ import annotations

import subprocess
from typing import Any, NamedTuple

from ansible.module_utils.pai_json import parse

KUBECTL = "/usr/local/bin/kubectl"
ADMIN_CONF = "/etc/kubernetes/admin.conf"
KUBELET_CONF = "/etc/kubernetes/kubelet.conf"
API_PORT = 6443
# a question that the API server answers at once; what waits for something gives a limit of its own
QUESTION_S = 30
OVERDUE = 124


class Answer(NamedTuple):
    """How kubectl ended. status: its exit status, OVERDUE when it was stopped, 127 when it is not installed."""

    status: int
    out: str
    err: str

    @property
    def ok(self) -> bool:
        """Returns whether kubectl succeeded."""
        return self.status == 0

    @property
    def message(self) -> str:
        """Returns the output or the error message."""
        return (self.out if self.ok else self.err or self.out).strip()


class KubectlError(Exception):
    """kubectl failed. The text is the message of the API server or kubectl."""


class Kubectl:
    """kubectl with a kubeconfig."""

    def __init__(self, kubeconfig: str = ADMIN_CONF, program: str = KUBECTL) -> None:
        self.kubeconfig = kubeconfig
        self.program = program

    def run(self, *words: str, data: str | None = None, timeout_s: float = 900) -> Answer:
        """Runs kubectl and stops it after timeout_s seconds. data: optional standard input."""
        argv = [self.program, f"--kubeconfig={self.kubeconfig}", *words]
        stdin = (data or "").encode()
        try:
            # The input is always given, if only empty: kubectl must not read that of the task.
            done = subprocess.run(
                argv, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout_s, check=False
            )
        except subprocess.TimeoutExpired:
            return Answer(OVERDUE, "", f"kubectl {' '.join(words[:3])} did not end within {timeout_s:g} s")
        except OSError as error:
            return Answer(127, "", f"{self.program} cannot be run: {error}")
        return Answer(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

    def call(self, *words: str, timeout_s: float = QUESTION_S) -> Answer:
        """Runs kubectl for one short request, which the API server must answer in timeout_s seconds."""
        # kubectl asks for the kinds of the API first, each with this timeout. So the process gets twice the time.
        return self.run(f"--request-timeout={timeout_s:g}s", *words, timeout_s=2 * timeout_s)

    def get(self, *words: str, timeout_s: float = QUESTION_S) -> Any:
        """What `kubectl get WORDS --output json` gives. Raises KubectlError, also for an answer that is no object."""
        answer = self.call("get", "--output=json", *words, timeout_s=timeout_s)
        if not answer.ok:
            raise KubectlError(answer.message)
        # kubectl prints nothing for a missing object with this option.
        if not answer.out.strip() and "--ignore-not-found" in words:
            return {}
        try:
            found = parse(answer.out)
        except ValueError as error:
            raise KubectlError(f"kubectl returned no JSON: {error}") from error
        if not isinstance(found, dict):
            raise KubectlError("kubectl returned no JSON object")
        return found

    def node_is_ready(self, node: str) -> bool:
        """Returns whether a node is Ready. A missing node is not."""
        ready = 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'
        return self.call("get", "node", node, "--output", ready).message == "True"

    def items(self, *words: str, timeout_s: float = QUESTION_S) -> list[dict[str, Any]]:
        """The objects of a list. Raises KubectlError."""
        found = self.get(*words, timeout_s=timeout_s).get("items")
        if not isinstance(found, list):
            raise KubectlError("kubectl returned no list")
        return [entry for entry in found if isinstance(entry, dict)]
