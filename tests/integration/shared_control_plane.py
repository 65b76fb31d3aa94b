"""One control plane for all modules. A module finds it as after its start, or as a preparation has left it."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.integration.control_plane import Api, Json, Servers, let_in, started
from tests.integration.etcd_content import Content, content_of, put_back
from tests.waiting import until

Given = TypeVar("Given")
RBAC, ADMISSION = "rbac.authorization.k8s.io", "admissionregistration.k8s.io/v1"


@dataclass(frozen=True)
class State:
    """What modules find. kinds: that the API server serves. files: beside it. given: by the preparation."""

    content: Content
    kinds: Json
    files: frozenset[Path]
    given: Any


class ControlPlane:
    """etcd and an API server. They start once, and again where what a module left does not go away."""

    servers: Servers

    def __init__(self, programs: dict[str, Path], new_folder: Callable[[], Path]) -> None:
        self._programs, self._new_folder = programs, new_folder
        self._stack, self._states = ExitStack(), dict[str, State]()

    def fresh(self) -> Api:
        """The API server as after its start."""
        return self.prepared("", lambda api: api)

    def prepared(self, name: str, prepare: Callable[[Api], Given]) -> Given:
        """What `prepare` has returned, with the objects that it made of a fresh API server, and no others.

        It runs once: all modules find the same objects.
        """
        if name in self._states:
            try:
                self._reset(self._states[name])
            except (AssertionError, OSError, ValueError) as error:
                warnings.warn(f"the next tests get another API server, and wait for it: {error!r}", stacklevel=1)
                self.stop()
        if name not in self._states:
            given = prepare(self.fresh() if name else self._started())
            self._states[name] = self._state(given)
        found: Given = self._states[name].given
        return found

    def stop(self) -> None:
        self._stack.close()
        self._states = {}

    def _started(self) -> Api:
        self.servers = self._stack.enter_context(started(self._programs, self._new_folder()))
        self._lets_in = self._authentication.stat().st_ino
        return self.servers.api

    def _state(self, given: object) -> State:
        """Returns once nothing has changed for a second."""
        for _ in range(60):
            files = frozenset(self.servers.api.folder.iterdir())
            found = State(content_of(self.servers.etcd), self._kinds(), files, given)
            time.sleep(1)
            if content_of(self.servers.etcd) == found.content and self._kinds() == found.kinds:
                return found
        raise AssertionError("a program still makes objects")

    def _reset(self, state: State) -> None:
        """Raises AssertionError for an API server that still shows what it had."""
        api, etcd = self.servers.api, self.servers.etcd
        assert self.servers.program.poll() is None, "the API server has ended"
        for path in set(api.folder.iterdir()) - state.files:
            path.unlink()
        if self._authentication.stat().st_ino != self._lets_in:
            self._let_nobody_else_in()
        changes = put_back(etcd, state.content)
        if any("admissionpolic" in key for key in changes):
            wait_for_policies(api)
        if any("role" in key for key in changes):
            wait_for_rights(api)
        until(lambda: not put_back(etcd, state.content), 60, "objects that others make again")
        until(lambda: self._kinds() == state.kinds, 60, "kinds that it should not serve")

    def _kinds(self) -> Json:
        aggregated = "Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        return self.servers.api.with_header(aggregated).ask("GET", "/apis")

    @property
    def _authentication(self) -> Path:
        return self.servers.api.folder / "authentication.yaml"

    def _let_nobody_else_in(self) -> None:
        """Returns once the API server has read the file, which it does within a minute."""
        api = self.servers.api
        let_in(api.folder, [])
        self._lets_in = self._authentication.stat().st_ino
        read = f'hash="sha256:{hashlib.sha256(self._authentication.read_bytes()).hexdigest()}"'
        until(lambda: read in api.text("GET", "/metrics"), 90, "users of an issuer")


@pytest.fixture(scope="package")
def control_plane(programs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Starts with the first module, and ends with the last one."""
    made = ControlPlane(programs, lambda: tmp_path_factory.mktemp("control-plane"))
    yield made
    made.stop()


@pytest.fixture(scope="module")
def api(control_plane: ControlPlane) -> Api:
    """An API server as after its start; no node, no controller."""
    return control_plane.fresh()


def wait_for_rights(api: Api) -> None:
    """Returns once the API server has read new roles and bindings, and so all changes before."""
    name, reviews = f"reset-{time.time_ns()}", "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    for kind, place in (("ClusterRole", {}), ("Role", {"namespace": "default"})):
        rule = {"apiGroups": [""], "resources": [name], "verbs": [kind]}
        binding = {
            "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
            "subjects": [{"apiGroup": RBAC, "kind": "User", "name": name}],
        }
        for suffix, content in (("", {"rules": [rule]}), ("Binding", binding)):
            metadata = {"name": name, **place}
            api.apply({"apiVersion": f"{RBAC}/v1", "kind": f"{kind}{suffix}", "metadata": metadata, **content})
        asked = {"user": name, "resourceAttributes": {"verb": kind, "resource": name, "namespace": "default"}}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": asked}
        until(lambda review=review: api.ask("POST", reviews, review)["status"]["allowed"], 60, "rights")  # type: ignore[misc]


def wait_for_policies(api: Api) -> None:
    """The API server reads all policies anew once a second. Returns once it has read new ones of both sorts."""
    name = f"reset-{time.time_ns()}"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
    spec = {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [{**rule, "resourceNames": [name]}]}}
    change = {"expression": f"Object{{data: {{'{name}': ''}}}}"}
    changes = [{"patchType": "ApplyConfiguration", "applyConfiguration": change}]
    refusal = {"expression": f"!('{name}' in object.?data.orValue({{}}))"}
    for sort, content, binding in (
        ("Mutating", {"mutations": changes, "reinvocationPolicy": "Never"}, {}),
        ("Validating", {"validations": [refusal]}, {"validationActions": ["Deny"]}),
    ):
        for suffix, found in (("", {**spec, **content}), ("Binding", {**binding, "policyName": name})):
            entry = {"kind": f"{sort}AdmissionPolicy{suffix}", "metadata": {"name": name}, "spec": found}
            api.apply({"apiVersion": ADMISSION, **entry})
    probe = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}
    until(lambda: f"Policy '{name}'" in api.create(probe, "?dryRun=All"), 60, "policies")
