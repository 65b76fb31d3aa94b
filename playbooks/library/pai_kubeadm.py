#!/usr/bin/python
"""Ansible module: a machine's membership in the cluster, by kubeadm."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_kubeadm
short_description: Make a machine the first control plane, or join it, or bring a member's settings up to date
description:
  - An interrupted init or join of pai-install's own is undone by kubeadm reset and done again.
  - A machine that is a member of a cluster that pai-install did not make is refused.
  - On a member, manifests and kubelet settings are rendered again; the kubelet restarts only when they changed.
  - Certificates, keys, kubeconfigs, manifests and settings belong to root, and no more is permitted than they need.
  - A control plane whose manifests would change is left alone while etcd could lose its quorum by it.
  - No second cluster is made, and no control plane joins, against what the API at C(ready_url) says.
options:
  state: {description: What to reach., type: str, choices: [init, join, join-control-plane], required: true}
  config: {description: kubeadm configuration (YAML)., type: str, required: true}
  refresh_config:
    description: kubeadm configuration to render a joined control plane's manifests with.
    type: str
  ignore_preflight_errors: {description: Names of kubeadm's checks to ignore., type: list, elements: str, default: []}
  encryption_config: {description: Where the key for secrets at rest is; made when missing (init)., type: path}
  address: {description: "This control plane's address, as etcd knows it.", type: str, default: ""}
  ready_url: {description: "Where the API of all control planes says whether it is ready.", type: str, default: ""}
  timeout: {description: Seconds for init or join., type: int, default: 600}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Make the first control plane
  pai_kubeadm: {state: init, config: "{{ __config }}"}
"""
RETURN = r"""
actions: {description: What was done., type: list, elements: str, returned: always}
managed: {description: Expectations for pai_record., type: list, elements: dict, returned: always}
"""

import base64
import glob
import json
import os
import re
import shutil
import ssl
import stat
import tempfile
import time
import urllib.error
import urllib.request
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_etcd_members import EtcdError, members, sickness, stop_problem
from ansible.module_utils.pai_managed import STATE_DIR, file_sha256, newer_than_start, too_open, unit_state

KUBEADM = "/usr/local/bin/kubeadm"
ADMIN_CONF = "/etc/kubernetes/admin.conf"
KUBELET_CONF = "/etc/kubernetes/kubelet.conf"
ETCD_DATA = "/var/lib/etcd/member"
KUBERNETES = "/etc/kubernetes"
KUBECONFIGS = ("admin", "kubelet", "controller-manager", "scheduler")
MARKER = STATE_DIR + "/kubeadm.json"
COPIES = STATE_DIR + "/rendered"
MANIFESTS = "/etc/kubernetes/manifests"
KUBELET_BACKUPS = "/etc/kubernetes/tmp/kubeadm-kubelet-config-*"
API_PORT = 6443
# how long etcd may take to become whole again after another control plane was changed
PATIENCE_S = 90
RENDERED = (
    MANIFESTS + "/*.yaml",
    "/var/lib/kubelet/config.yaml",
    "/var/lib/kubelet/kubeadm-flags.env",
)

# What nobody but root may change, and mostly not read either: pattern -> the most that may be permitted. kubeadm and
# the kubelet make some of these files readable for all.
GUARDED = {
    "/etc/kubernetes/*.conf": "0600",
    MANIFESTS + "/*.yaml": "0600",
    "/etc/kubernetes/encryption/*": "0600",
    "/etc/kubernetes/pki": "0755",
    "/etc/kubernetes/pki/etcd": "0755",
    "/etc/kubernetes/pki/*.key": "0600",
    "/etc/kubernetes/pki/etcd/*.key": "0600",
    "/etc/kubernetes/pki/*.crt": "0600",
    "/etc/kubernetes/pki/etcd/*.crt": "0600",
    "/var/lib/etcd": "0700",
    "/var/lib/kubelet/*.yaml": "0600",
    "/var/lib/kubelet/kubeadm-flags.env": "0600",
    "/var/lib/kubelet/pki/kubelet.key": "0600",
    "/var/lib/kubelet/pki/kubelet-client-current.pem": "0600",
}


def guarded() -> dict[str, str]:
    """The guarded files and folders of this machine -> the most that may be permitted."""
    return {path: most for pattern, most in GUARDED.items() for path in sorted(glob.glob(pattern))}


def loose() -> dict[str, str]:
    """Guarded files and folders that are too open or somebody else's -> what is wrong."""
    return {path: problem for path, most in guarded().items() if (problem := too_open(path, most))}


def tighten() -> None:
    """Gives the guarded ones back to root, and takes permissions away that they must not have."""
    for path in loose():
        os.chown(path, 0, 0)
        os.chmod(path, stat.S_IMODE(os.stat(path).st_mode) & int(guarded()[path], 8))


def rendered_files() -> dict[str, str]:
    """Files that kubeadm renders on this machine -> their digests."""
    return {path: file_sha256(path) for pattern in RENDERED for path in sorted(glob.glob(pattern))}


def written_at() -> dict[str, int]:
    """Rendered files -> when they were written, in nanoseconds since the epoch."""
    return {path: os.stat(path).st_mtime_ns for path in rendered_files()}


def keep_times(before: dict[str, str], written: dict[str, int]) -> None:
    """Gives files that were rendered as they had been their old time: a younger one asks for a restart."""
    for path, digest in rendered_files().items():
        if before.get(path) == digest and os.stat(path).st_mtime_ns != written[path]:
            os.utime(path, ns=(written[path], written[path]))


def expectations(state: str) -> list[dict[str, Any]]:
    """For pai_record: rendered files as they are, who may read other guarded ones, kubeconfigs that must be there."""
    kubeconfigs = [{"kind": "present", "path": path, "filled": True} for path in kubeconfigs_of(state)]
    rendered = rendered_files()
    private = [
        {"kind": "private", "path": path, "mode": mode} for path, mode in guarded().items() if path not in rendered
    ]
    return [*kubeconfigs, *private] + [
        {
            "kind": "file",
            "path": path,
            "sha256": digest,
            "size": os.stat(path).st_size,
            "mode": f"{stat.S_IMODE(os.stat(path).st_mode):04o}",
            "restarts": reader(path),
        }
        for path, digest in rendered.items()
    ]


def kubeconfigs_of(state: str) -> list[str]:
    """Files that a control plane's own authority can make again; super-admin.conf may be put away by the admin."""
    return [] if state == "join" else [os.path.join(KUBERNETES, f"{name}.conf") for name in KUBECONFIGS]


def reader(path: str) -> str:
    """What restarts when a rendered file changes, in the words of a plan."""
    if path.startswith(MANIFESTS):
        return f"the static pod {os.path.basename(path)[: -len('.yaml')]}"
    return "kubelet.service"


def kept(state: str) -> list[str]:
    """Files that kubeadm renders only while joining: a copy is kept, to bring them back."""
    if state == "init":
        return []
    return [RENDERED[2], MANIFESTS + "/etcd.yaml"] if state == "join-control-plane" else [RENDERED[2]]


def keep_copies(state: str) -> None:
    """Keeps the copies."""
    os.makedirs(COPIES, mode=0o700, exist_ok=True)
    for path in kept(state):
        shutil.copy2(path, copy_of(path))


def copy_of(path: str) -> str:
    """Where the copy of a kept file is."""
    return os.path.join(COPIES, os.path.basename(path))


def bring_back(state: str) -> None:
    """Replaces files that differ from their copies, or are gone."""
    for path in kept(state):
        copy = copy_of(path)
        if os.path.exists(copy) and (not os.path.exists(path) or file_sha256(path) != file_sha256(copy)):
            shutil.copy2(copy, path + ".pai-new")
            os.replace(path + ".pai-new", path)


def differing(state: str, rendered: str) -> list[str]:
    """Manifests that are not as kubeadm renders them (files in the folder `rendered`), or not as their copies are."""
    wanted = {os.path.basename(path): path for path in glob.glob(rendered + "/*.yaml")}
    wanted.update({os.path.basename(path): copy_of(path) for path in kept(state) if path.startswith(MANIFESTS)})
    return sorted(
        name
        for name, source in wanted.items()
        if os.path.exists(source) and digest_or_none(os.path.join(MANIFESTS, name)) != file_sha256(source)
    )


def digest_or_none(path: str) -> str | None:
    """A file's digest; None when it is not there."""
    return file_sha256(path) if os.path.exists(path) else None


def wait_for_restart(manifests: list[str], since: float, patience_s: float = 60) -> None:
    """Waits until the programs of these static pods have started anew: until then the old ones still answer."""
    names = [name[: -len(".yaml")] for name in manifests]
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline and not all(youngest_start(name) >= since - 1 for name in names):
        time.sleep(1)


def restart_static_pod(name: str, patience_s: float = 60) -> None:
    """Has the kubelet begin a static pod anew at once, where there is one: it saw what is no more, or waits to retry.

    Killed in between, the manifest is missing, and the next run renders it again.
    """
    manifest, aside = os.path.join(MANIFESTS, f"{name}.yaml"), os.path.join(STATE_DIR, f"{name}.aside")
    if not os.path.exists(manifest):
        return
    shutil.move(manifest, aside)
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline and youngest_start(name):
        time.sleep(1)
    shutil.move(aside, manifest)


def youngest_start(program: str, proc: str = "/proc") -> float:
    """When the youngest process of that name started, in seconds since the epoch; 0 when there is none."""
    with open(proc + "/uptime", encoding="utf-8") as handle:
        booted = time.time() - float(handle.read().split()[0])
    ticks = os.sysconf("SC_CLK_TCK")
    starts = [0.0]
    for path in glob.glob(proc + "/[0-9]*/stat"):
        try:
            with open(path, encoding="utf-8", errors="replace") as handle:
                text = handle.read()
        except OSError:
            continue  # it ended meanwhile
        name, _, rest = text.partition("(")[2].rpartition(")")
        if name == program[:15]:
            starts.append(booted + int(rest.split()[19]) / ticks)
    return max(starts)


def asked_whether_ready(url: str) -> tuple[bool, str]:
    """Whether the API there says that it is ready; and what it said, empty when nobody answered."""
    # Who answers is not the question here: no secret is sent, and a join checks the authority by its digest.
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(url, timeout=5) as answer:
            return True, str(answer.status)
    except urllib.error.HTTPError as error:
        return False, f"{error.code} {error.reason}: {error.read(500).decode(errors='replace').strip()}"
    except OSError:
        return False, ""


def marker() -> dict[str, Any]:
    """What pai-install last did here: {"state": init|join|join-control-plane, "done": bool}; empty when nothing."""
    try:
        with open(MARKER, encoding="utf-8") as handle:
            return dict(json.load(handle))
    except (OSError, ValueError):
        return {}


def set_marker(state: str, done: bool) -> None:
    """Writes the marker in one step, on the disk before it returns."""
    os.makedirs(STATE_DIR, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=STATE_DIR)
    with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
        json.dump({"state": state, "done": done}, handle)
        handle.flush()
        os.fsync(handle.fileno())
    os.replace(temporary, MARKER)


def cause(output: str) -> str:
    """The lines of kubeadm's output that say what is wrong."""
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
        """Runs kubeadm; fails the task with the cause when it fails."""
        status, out, err = self.module.run_command([KUBEADM, *words])
        if status != 0 and not may_fail:
            self.module.fail_json(
                msg=f"kubeadm {words[0]} failed: {cause(err + out)}",
                output=(out + err).splitlines()[-60:],
                kubelet=self.kubelet_log(),
                actions=self.actions,
            )
        return out + err  # type: ignore[no-any-return]

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
        if leftovers and not before:
            self.module.fail_json(
                msg="this machine belongs to a Kubernetes cluster that pai-install did not make",
                remedy="if nothing on it is needed any more: kubeadm reset --force, then apply again",
            )
        self.actions.append(f"kubeadm {state}")
        if self.module.check_mode:
            return
        if leftovers or before:
            self.actions.append("undid an interrupted attempt")
            self.kubeadm("reset", "--force", may_fail=True)
            # kubeadm reset leaves etcd's data of a static pod it no longer finds
            self.module.run_command(["find", "/var/lib/etcd", "-mindepth", "1", "-delete"])
        self.require_fitting_api(state)
        set_marker(state, done=False)
        self.make_encryption_key()
        skip = ",".join(self.module.params["ignore_preflight_errors"])
        verb = "init" if state == "init" else "join"
        words = [verb, "--config", self.config] + ([f"--ignore-preflight-errors={skip}"] if skip else [])
        self.kubeadm(*words)
        tighten()
        keep_copies(state)
        set_marker(state, done=True)

    def make_encryption_key(self) -> None:
        """Makes the key that encrypts secrets in etcd; an existing one is never touched."""
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
        deadline = time.monotonic() + PATIENCE_S
        ready, said = asked_whether_ready(url)
        while state == "join-control-plane" and not ready and time.monotonic() < deadline:
            time.sleep(2)
            ready, said = asked_whether_ready(url)
        if state == "init" and said:
            self.module.fail_json(
                msg=f"another control plane answers at {url}: a new one here would be a second cluster",
                remedy="pai-install apply joins this machine to it, as soon as that control plane can be reached",
            )
        if state == "join-control-plane" and not ready:
            self.module.fail_json(
                msg=f"the API of the control planes is not ready, so none joins: {said or 'nobody answers'}",
                remedy="pai-install status; kubectl get --raw '/readyz?verbose' names the part that is not ready",
            )

    def refresh(self, state: str) -> None:
        """Renders a member's manifests and kubelet settings again. state: how it became a member."""
        self.actions += [f"mended: {problem}" for problem in loose().values()]
        if self.module.check_mode:
            return  # what kubeadm would render is known only by rendering it
        before, written = rendered_files(), written_at()
        stale = self.kubelet_is_stale()
        if state != "join":
            self.make_kubeconfigs(state)
            self.refresh_manifests(state)
        bring_back(state)
        if state == "init":
            self.kubeadm("init", "phase", "kubelet-start", "--config", self.config)
        if state != "join":
            self.wait_for_api()
        if self.module.params["state"] == "init":
            self.kubeadm("init", "phase", "upload-config", "all", "--config", self.config)
        if state != "init":
            self.kubeadm("upgrade", "node", "phase", "kubelet-config")
            for backup in glob.glob(KUBELET_BACKUPS):  # one more with every run
                shutil.rmtree(backup, ignore_errors=True)
        keep_times(before, written)
        tighten()
        self.settle(state, before, stale=stale)

    def make_kubeconfigs(self, state: str) -> None:
        """Makes those of a control plane's kubeconfigs that are gone; what is there stays as it is.

        For a static pod whose kubeconfig is gone the kubelet makes an empty file, and containerd an empty folder.
        """
        for path in kubeconfigs_of(state):
            if os.path.isdir(path):
                os.rmdir(path)
            elif os.path.exists(path) and not os.path.getsize(path):
                os.unlink(path)
            if not os.path.exists(path):
                name = os.path.basename(path)[: -len(".conf")]
                self.kubeadm("init", "phase", "kubeconfig", name, "--config", self.config)
                self.actions.append(f"made {path}")
                restart_static_pod(f"kube-{name}")

    def settle(self, state: str, before: dict[str, str], *, stale: bool) -> None:
        """Says what was rendered differently, and restarts the kubelet where it has to read it."""
        after = rendered_files()
        changed = sorted(path for path in after if after[path] != before.get(path))
        self.actions += [f"rendered {path}" for path in changed]
        kubelet_changed = stale or any(path.startswith("/var/lib/kubelet/") for path in changed)
        if state != "init" and (kubelet_changed or unit_state("kubelet.service").get("ActiveState") != "active"):
            self.actions.append("restarted the kubelet")
            self.module.run_command(["systemctl", "restart", "kubelet"], check_rc=True)

    def refresh_manifests(self, state: str) -> None:
        """Renders the static pods again where that makes a difference; first makes sure that etcd survives it."""
        phases = [("control-plane", "all"), ("etcd", "local")] if state == "init" else [("control-plane", "all")]
        folder = tempfile.mkdtemp(prefix="pai-rendered-")
        try:
            self.module.run_command_environ_update = {"KUBEADM_INIT_DRYRUN_DIR": folder}
            for phase in phases:
                self.kubeadm("init", "phase", *phase, "--config", self.config, "--dry-run")
            changing = differing(state, folder)
        finally:
            self.module.run_command_environ_update = {}
            shutil.rmtree(folder, ignore_errors=True)
        if not changing:
            return
        self.require_quorum(changing)
        began = time.time()
        for phase in phases:
            self.kubeadm("init", "phase", *phase, "--config", self.config)
        bring_back(state)
        wait_for_restart(changing, began)

    def require_quorum(self, changing: list[str]) -> None:
        """Fails when etcd would lose its quorum while this control plane's pods restart; waits a while for it.

        A scheduler or controller manager that restarts takes nothing away.
        """
        if not set(changing) & {"etcd.yaml", "kube-apiserver.yaml"}:
            return
        deadline = time.monotonic() + PATIENCE_S
        problem = self.quorum_problem()
        while problem and time.monotonic() < deadline:
            time.sleep(2)
            problem = self.quorum_problem()
        if problem:
            self.module.fail_json(
                msg=f"{', '.join(changing)} must change, but without this machine etcd would have no quorum: {problem}",
                remedy="bring the named machine back, then apply again",
            )

    def quorum_problem(self) -> str:
        """Why etcd cannot do without this machine for a moment; empty when it can, or does already."""
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
        kubectl = [
            "/usr/local/bin/kubectl",
            "--kubeconfig",
            ADMIN_CONF,
            f"--server=https://127.0.0.1:{API_PORT}",
            "get",
            "--raw=/readyz",
            "--request-timeout=5s",
        ]
        while self.module.run_command(kubectl)[0] != 0:
            if time.monotonic() > deadline:
                self.module.fail_json(
                    msg="the API server does not answer", kubelet=self.kubelet_log(), actions=self.actions
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
            "ready_url": {"type": "str", "default": ""},
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
            handle.write(module.params["refresh_config"] if refreshing else module.params["config"])
        if is_member(state):
            member.refresh(marker()["state"])
        else:
            member.enter(state)
    finally:
        os.unlink(member.config)
    module.exit_json(changed=bool(member.actions), actions=member.actions, managed=expectations(state))


if __name__ == "__main__":
    main()
