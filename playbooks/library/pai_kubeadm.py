#!/usr/bin/python
"""Ansible module: a machine's membership in the cluster, by kubeadm."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_kubeadm
short_description: Run kubeadm init or join, or update the settings of a member
description:
  - An interrupted init or join of pai-install's own is undone by kubeadm reset and done again.
  - A machine that is a member of a cluster that pai-install did not make is refused.
  - On a member, renders manifests and kubelet settings again. The kubelet restarts only after a change.
  - Certificates, keys, kubeconfigs, manifests and settings belong to root, with the least permissions.
  - A control plane that runs another I(version) is brought to it by kubeadm upgrade, again where that was interrupted.
  - A control plane does not change while a restart could cost etcd its quorum.
  - The API at C(ready_url) is asked first: no second cluster is created, and no control plane joins an unready one.
options:
  state: {description: What to reach., type: str, choices: [init, join, join-control-plane], required: true}
  config: {description: kubeadm configuration (YAML)., type: str, required: true}
  refresh_config:
    description: kubeadm configuration to render a joined control plane's manifests with.
    type: str
  ignore_preflight_errors: {description: Names of kubeadm's checks to ignore., type: list, elements: str, default: []}
  encryption_config: {description: Path of the key for secrets at rest, created if missing (init)., type: path}
  address: {description: "This control plane's address, as etcd knows it.", type: str, default: ""}
  login:
    description: "Of a machine that joins: endpoint, certificate and authority of pai_node_certificate."
    type: dict
    default: {}
  name: {description: "Of a machine that joins with a login: its node.", type: str, default: ""}
  ready_url: {description: "Where the API of all control planes says whether it is ready.", type: str, default: ""}
  version: {description: "Version of a control plane, without v. Empty for kubeadm's.", type: str, default: ""}
  program: {description: "kubeadm, of that version.", type: path, default: /usr/local/bin/kubeadm}
  timeout: {description: Seconds for init or join., type: int, default: 600}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Make the first control plane
  pai_kubeadm: {state: init, config: "{{ __config }}"}
"""
RETURN = r"""
actions: {description: What was done., type: list, elements: str, returned: always}
managed: {description: Expectations for pai_state., type: list, elements: dict, returned: always}
"""

import base64
import fcntl
import glob
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_api_ready import readiness
from ansible.module_utils.pai_etcd_members import EtcdError, members, sickness, stop_problem
from ansible.module_utils.pai_kubeadm_files import (
    RENDERED,
    bring_back,
    differing,
    enforce_modes,
    expectations,
    keep_copies,
    keep_times,
    kubeconfigs_of,
    mode_problems,
    other_than,
    put_in_place,
    rendered_files,
    written_at,
)
from ansible.module_utils.pai_kubeadm_upgrade import clean, commands, outdated
from ansible.module_utils.pai_kubectl import ADMIN_CONF, API_PORT, KUBELET_CONF, Kubectl
from ansible.module_utils.pai_managed import STATE_DIR, newer_than_start, unit_state
from ansible.module_utils.pai_node_login import KUBELET_CONF_CHECK, LoginError, write_login
from ansible.module_utils.pai_pod_network import forget
from ansible.module_utils.pai_root_kubectl import (
    link_root_kubectl,
    root_kubectl_expectations,
    root_kubectl_problem,
)
from ansible.module_utils.pai_static_pods import PODS, restart_static_pod, wait_for_restart

KUBEADM = "/usr/local/bin/kubeadm"
ETCD_DATA = "/var/lib/etcd/member"
ADDRESS_LEASES = "/var/lib/cni/networks"
MARKER = STATE_DIR + "/kubeadm.json"
# what an init that goes on over the data of a backup finds there
RESTORED_CHECKS = [
    "DirAvailable--var-lib-etcd",
    *(f"FileAvailable--etc-kubernetes-manifests-{pod}.yaml" for pod in PODS),
    *(f"Port-{port}" for port in (API_PORT, 2379, 2380, 10250, 10257, 10259)),
]
LOCK = "/run/pai-install-kubeadm.lock"
KUBELET_DIR = "/var/lib/kubelet"
KUBELET_BACKUPS = "/etc/kubernetes/tmp/kubeadm-kubelet-config-*"
# seconds until etcd must be healthy again after a change of another control plane
READY_TIMEOUT_S = 90
# until a cluster notices that a kubelet is gone (40 s after its last word), with time for the controller to begin
OLD_SELF_S = 180


def marker() -> dict[str, Any]:
    """Returns the last operation of pai-install: {"state": init
    join
    join-control-plane, "done": bool}, or {}.

    "restored": pai_restore prepared a backup for init. An interrupted init must keep it.
    """
    try:
        with open(MARKER, encoding="utf-8") as handle:
            return dict(json.load(handle))
    except (OSError, ValueError):
        return {}


def set_marker(state: str, done: bool, upgrading: str = "", *, restored: bool = False) -> None:
    """Writes the marker in one step, on the disk before it returns.

    upgrading: the version that was begun. restored: etcd's data and the keys are those of a backup.
    """
    os.makedirs(STATE_DIR, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=STATE_DIR)
    with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
        more = {"upgrading": upgrading, "restored": restored}
        json.dump({"state": state, "done": done, **{key: value for key, value in more.items() if value}}, handle)
        handle.flush()
        os.fsync(handle.fileno())
    os.replace(temporary, MARKER)


@contextmanager
def alone(timeout_s: float, path: str = LOCK) -> Iterator[None]:
    """Waits for the end of a kubeadm process from an earlier, disconnected run."""
    with open(path, "w", encoding="utf-8") as handle:
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                # The kernel drops the lock when its process ends, however that happens. A file with a number would
                # stay.
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(1)
        yield


def cause(output: str) -> str:
    """Returns the lines of kubeadm's output with the cause of a failure."""
    # kubeadm prints pages of progress, and its cause in one line somewhere in between.
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"\[ERROR |^error|error execution phase|fatal", line, re.IGNORECASE)]
    return "; ".join(errors[:6]) or "; ".join(lines[-3:])


class Member:
    """This machine on its way into the cluster."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.actions: list[str] = []
        self.config = ""

    def kubeadm(self, *words: str, may_fail: bool = False) -> str:
        """Runs kubeadm. Fails the task with the cause of a failure."""
        status, out, err = self.module.run_command([self.module.params.get("program", KUBEADM), *words])
        if status != 0 and not may_fail:
            self.module.fail_json(
                msg=f"kubeadm {words[0]} failed: {cause(err + out)}",
                evidence={"kubeadm": (out + err).splitlines()[-30:], "kubelet": self.kubelet_log()},
                actions=self.actions,
            )
        return out + err

    def kubelet_log(self) -> list[str]:
        """The kubelet's last words."""
        log = self.module.run_command(
            ["journalctl", "--unit", "kubelet", "--no-pager", "--lines", "15", "--output", "cat"]
        )[1]
        return [line[:400] for line in log.splitlines()]

    def enter(self, state: str) -> None:
        """Init or join, after undoing a half-done one of ours."""
        before = marker()
        leftovers = os.path.exists(KUBELET_CONF) or os.path.exists(ADMIN_CONF) or bool(glob.glob(RENDERED[0]))
        # A reset would destroy a cluster of other people. Only our marker permits it.
        if leftovers and not before:
            self.module.fail_json(
                msg="this machine belongs to a Kubernetes cluster that pai-install did not make",
                remedy="if you no longer need that cluster: kubeadm reset --force there, then apply again",
            )
        self.actions.append(f"kubeadm {state}")
        if self.module.check_mode:
            return
        restored = state == "init" and bool(before.get("restored"))
        # kubeadm refuses a machine with files of an earlier attempt. Its own reset knows all of them.
        if (leftovers or before) and not restored:
            self.actions.append("undid an interrupted attempt")
            self.kubeadm("reset", "--force", may_fail=True)
            # kubeadm reset leaves etcd's data of a static pod it no longer finds
            self.module.run_command(["find", "/var/lib/etcd", "-mindepth", "1", "-delete"])
            self.remove_pod_network()
        # After the reset: a leftover API server of an interrupted init would answer here.
        self.require_fitting_api(state)
        # Before kubeadm: a run that is killed from here on is known as ours by the next one.
        set_marker(state, done=False, restored=restored)
        # Before kubeadm: the API server starts with this file, and writes its first secrets encrypted.
        self.make_encryption_key()
        checks = RESTORED_CHECKS if restored else []
        skip = ",".join([*self.module.params["ignore_preflight_errors"], *checks, *self.log_in()])
        verb = "init" if state == "init" else "join"
        words = [verb, "--config", self.config] + ([f"--ignore-preflight-errors={skip}"] if skip else [])
        self.kubeadm(*words)
        enforce_modes()
        keep_copies(state)
        set_marker(state, done=True)

    def log_in(self) -> list[str]:
        """Writes the kubelet's credentials for a join with a certificate. Returns kubeadm checks that would fail
        because of it.
        """
        login = self.module.params["login"]
        if not login:
            return []
        try:
            write_login(login["certificate"], login["authority"], login["endpoint"])
        except LoginError as error:
            self.module.fail_json(msg=str(error))
        self.wait_for_old_self()
        return [KUBELET_CONF_CHECK]

    def wait_for_old_self(self) -> None:
        """Waits until the cluster has noticed that the node's earlier kubelet is gone: kubeadm joins no ready node.

        The node stays, with its labels and who took it out of scheduling.
        """
        name, deadline = self.module.params["name"], time.monotonic() + OLD_SELF_S
        while name and time.monotonic() < deadline and Kubectl(KUBELET_CONF).node_is_ready(name):
            time.sleep(2)

    def remove_pod_network(self) -> None:
        """Removes the pod network of the earlier membership, which kubeadm reset keeps.

        A rejoining node may get another pod CIDR, and the bridge plugin refuses a bridge with an address of the old
        one.
        """
        for name in ("cni0", "flannel.1"):
            self.module.run_command(["ip", "link", "delete", name])  # fails where there is none
        shutil.rmtree(ADDRESS_LEASES, ignore_errors=True)
        forget()

    def make_encryption_key(self) -> None:
        """Creates the key that encrypts secrets in etcd. An existing key is never changed."""
        path = self.module.params["encryption_config"]
        if not path or os.path.exists(path):
            return
        provider = {"secretbox": {"keys": [{"name": "key1", "secret": base64.b64encode(os.urandom(32)).decode()}]}}
        content = {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "EncryptionConfiguration",
            "resources": [{"resources": ["secrets"], "providers": [provider, {"identity": {}}]}],
        }
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as handle:
            json.dump(content, handle)  # JSON is YAML

    def require_fitting_api(self, state: str) -> None:
        """Fails when a first control plane would be a second cluster, or a further one would find no healthy API."""
        url = self.module.params["ready_url"]
        if not url or state == "join":
            return
        deadline = time.monotonic() + READY_TIMEOUT_S
        ready, output = readiness(url)
        while state == "join-control-plane" and not ready and time.monotonic() < deadline:
            time.sleep(2)
            ready, output = readiness(url)
        # Any answer counts, also an error: something serves an API under the name of this cluster.
        if state == "init" and output:
            self.module.fail_json(
                msg=f"another control plane answers at {url}: kubeadm init here would create a second cluster",
                remedy="run pai-install apply to join this machine once that control plane is reachable",
            )
        if state == "join-control-plane" and not ready:
            self.module.fail_json(
                msg=f"the API of the control planes is not ready, so none joins: {output or 'no answer'}",
                remedy="run pai-install status, and find the failing part with kubectl get --raw '/readyz?verbose'",
            )

    def refresh(self, state: str) -> None:
        """Renders a member's manifests and kubelet settings again. state: how it became a member."""
        self.actions += [f"repaired: {problem}" for problem in mode_problems().values()]
        if state != "join":
            self.upgrade(state)
        if self.module.check_mode:
            return  # what kubeadm would render is known only by rendering it
        before, written = rendered_files(), written_at()
        stale = self.kubelet_is_stale()
        if state != "join":
            self.make_kubeconfigs(state)
            self.refresh_manifests(state)
        bring_back(state)
        if state == "init":
            self.start_kubelet(stale=stale)
        if state != "join":
            self.wait_for_api()
        # New nodes read these settings from the cluster when they join.
        if self.module.params["state"] == "init":
            self.kubeadm("init", "phase", "upload-config", "all", "--config", self.config)
        if state != "init":
            # This is kubeadm's only way to render the settings of a kubelet that has joined.
            self.kubeadm("upgrade", "node", "phase", "kubelet-config")
            for backup in glob.glob(KUBELET_BACKUPS):  # one more with every run
                shutil.rmtree(backup, ignore_errors=True)
        keep_times(before, written)
        enforce_modes()
        self.restart_changed_kubelet(state, before, stale=stale)

    def upgrade(self, state: str) -> None:
        """Upgrades the static pods to the desired version, one machine after the other. See refresh.

        The marker records a started upgrade, because kubeadm's steps after the pods must also run then.
        """
        version = self.module.params.get("version", "")
        if not version or not (outdated(version) or marker().get("upgrading") == version):
            return
        self.actions.append(f"kubeadm upgrade to {version}")
        if self.module.check_mode:
            return
        # kubeadm restarts etcd and the API server. Without the quorum of the others, the cluster would stop.
        self.require_quorum(["etcd.yaml", "kube-apiserver.yaml"])
        set_marker(state, done=True, upgrading=version)
        first, ignored = self.module.params["state"] == "init", self.module.params["ignore_preflight_errors"]
        for words in commands(version, self.config, first=first, ignored=ignored):
            self.kubeadm(*words)
        enforce_modes()
        keep_copies(state)
        clean()
        set_marker(state, done=True)

    def make_kubeconfigs(self, state: str) -> None:
        """Creates a control plane's missing kubeconfigs. Existing ones stay unchanged.

        For a static pod with a missing kubeconfig, the kubelet creates an empty file and containerd an empty folder at
        each start of its container. So kubeadm creates the file in a temporary folder.
        """
        for path in kubeconfigs_of(state):
            if os.path.isfile(path) and os.path.getsize(path):
                continue
            name = os.path.basename(path)[: -len(".conf")]
            with tempfile.TemporaryDirectory(prefix=".pai-install-", dir=os.path.dirname(path)) as folder:
                where = ["--config", self.config, "--kubeconfig-dir", folder]
                self.kubeadm("init", "phase", "kubeconfig", name, *where)
                put_in_place(os.path.join(folder, os.path.basename(path)), path)
            self.actions.append(f"made {path}")
            # The kubelet waits up to five minutes before it starts a crashed container again.
            restart_static_pod(f"kube-{name}")

    def restart_changed_kubelet(self, state: str, before: dict[str, str], *, stale: bool) -> None:
        """Reports changed rendered files, and restarts the kubelet if it must read them."""
        after = rendered_files()
        changed = sorted(path for path in after if after[path] != before.get(path))
        self.actions += [f"rendered {path}" for path in changed]
        kubelet_changed = stale or any(path.startswith("/var/lib/kubelet/") for path in changed)
        # kubeadm init restarts the kubelet in its own phase, see start_kubelet.
        if state != "init" and (kubelet_changed or unit_state("kubelet.service").get("ActiveState") != "active"):
            self.actions.append("restarted the kubelet")
            self.module.run_command(["systemctl", "restart", "kubelet"], check_rc=True)

    def refresh_manifests(self, state: str) -> None:
        """Renders the changed static pods again, after a check that etcd keeps its quorum."""
        # On joined members, kubeadm init would render an etcd of one member. Their manifest comes from a copy.
        phases = [("control-plane", "all"), ("etcd", "local")] if state == "init" else [("control-plane", "all")]
        # A dry run first: most runs change nothing, and then nothing asks etcd.
        with self.rendered(*phases) as folder:
            changing = differing(state, folder)
        if not changing:
            return
        self.require_quorum(changing)
        began = time.time()
        for phase in phases:
            self.kubeadm("init", "phase", *phase, "--config", self.config)
        bring_back(state)
        wait_for_restart(changing, began)

    @contextmanager
    def rendered(self, *phases: tuple[str, ...]) -> Iterator[str]:
        """Yields a temporary folder with the files that kubeadm would write in these phases of init."""
        folder = tempfile.mkdtemp(prefix="pai-rendered-")
        try:
            # Without this variable, kubeadm chooses a folder below /etc/kubernetes/tmp and leaves it there.
            self.module.run_command_environ_update = {"KUBEADM_INIT_DRYRUN_DIR": folder}
            for phase in phases:
                self.kubeadm("init", "phase", *phase, "--config", self.config, "--dry-run")
            self.module.run_command_environ_update = {}
            yield folder
        finally:
            self.module.run_command_environ_update = {}
            shutil.rmtree(folder, ignore_errors=True)

    def start_kubelet(self, *, stale: bool) -> None:
        """Renders the first control plane's kubelet settings where that makes a difference: kubeadm restarts it."""
        with self.rendered(("kubelet-start",)) as folder:
            changing = other_than(KUBELET_DIR, folder)
        # The phase restarts the kubelet in any case, so it runs for a reason only.
        if changing or stale or unit_state("kubelet.service").get("ActiveState") != "active":
            self.kubeadm("init", "phase", "kubelet-start", "--config", self.config)
            self.actions.append("restarted the kubelet")

    def configure_root_kubectl(self) -> None:
        """Lets root's kubectl find the cluster, where root has no kubeconfig of its own."""
        problem = root_kubectl_problem()
        if problem:
            self.actions.append(f"repaired: {problem}")
            if not self.module.check_mode:
                link_root_kubectl(ADMIN_CONF)

    def require_quorum(self, changing: list[str]) -> None:
        """Waits for the quorum of etcd during the restart of this control plane's pods, and fails without it.

        A restart of scheduler or controller manager does not affect it.
        """
        if not set(changing) & {"etcd.yaml", "kube-apiserver.yaml"}:
            return
        deadline = time.monotonic() + READY_TIMEOUT_S
        problem = self.quorum_problem()
        while problem and time.monotonic() < deadline:
            time.sleep(2)
            problem = self.quorum_problem()
        if problem:
            self.module.fail_json(
                msg=f"{', '.join(changing)} must change, but without this machine etcd would have no quorum: {problem}",
                remedy="restore the named machine, then apply again",
            )

    def quorum_problem(self) -> str:
        """Returns why etcd cannot lose this member briefly, or "" if it can or the member is down."""
        try:
            found = members()
        except EtcdError:
            return ""
        sick = {member["id"]: why for member in found if (why := sickness(member))}
        problem: str = stop_problem(found, sick, self.module.params["address"])
        return problem

    def kubelet_is_stale(self) -> bool:
        """Whether an interrupted run left settings that the kubelet has not read."""
        return bool(newer_than_start([RENDERED[1], RENDERED[2]], unit_state("kubelet.service")))

    def wait_for_api(self) -> None:
        """Waits until the API server of this machine answers: its manifest may just have changed."""
        deadline = time.monotonic() + self.module.params["timeout"]
        # Not by the endpoint of the cluster, where another control plane would answer.
        server = f"--server=https://127.0.0.1:{API_PORT}"
        while not Kubectl().call(server, "get", "--raw=/readyz", timeout_s=5).ok:
            if time.monotonic() > deadline:
                self.module.fail_json(
                    msg="the API server does not answer",
                    evidence={"kubelet": self.kubelet_log()},
                    actions=self.actions,
                )
            time.sleep(1)


def is_member(state: str) -> bool:
    """Whether pai-install's own init or join was completed here.

    A control plane that has its data stays one, whatever else is gone: undoing it would take the cluster with it.
    """
    proofs = [KUBELET_CONF] if state == "join" else [ETCD_DATA, ADMIN_CONF]
    return bool(marker().get("done")) and any(os.path.exists(path) for path in proofs)


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["init", "join", "join-control-plane"], "required": True},
            "config": {"type": "str", "required": True, "no_log": True},
            "refresh_config": {"type": "str", "no_log": True},
            "ignore_preflight_errors": {"type": "list", "elements": "str", "default": []},
            "encryption_config": {"type": "path", "no_log": False},
            "address": {"type": "str", "default": ""},
            "login": {"type": "dict", "default": {}},
            "name": {"type": "str", "default": ""},
            "ready_url": {"type": "str", "default": ""},
            "version": {"type": "str", "default": ""},
            "program": {"type": "path", "default": KUBEADM},
            "timeout": {"type": "int", "default": 600},
        },
        supports_check_mode=True,
    )
    member = Member(module)
    state = module.params["state"]
    # the configuration of a join holds a token: a private file, gone afterwards
    descriptor, member.config = tempfile.mkstemp(prefix="pai-kubeadm-", suffix=".yaml")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
            refreshing = is_member(state) and module.params["refresh_config"]
            # A configuration of a join has no ClusterConfiguration, from which manifests are rendered.
            handle.write(module.params["refresh_config"] if refreshing else module.params["config"])
        with alone(module.params["timeout"]):
            if is_member(state):
                member.refresh(marker()["state"])
            else:
                member.enter(state)
    except BlockingIOError:
        module.fail_json(
            msg=f"kubeadm of an earlier run is still at work here after {module.params['timeout']} s",
            remedy="check ps -C kubeadm on the machine. Run the same command again after its end",
        )
    finally:
        os.unlink(member.config)
    if state != "join":
        member.configure_root_kubectl()
    managed = [*expectations(state), *root_kubectl_expectations(state)]
    module.exit_json(changed=bool(member.actions), actions=member.actions, managed=managed)


if __name__ == "__main__":
    main()
