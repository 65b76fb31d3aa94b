"""Checks of a cluster: declared here, made by modules that run on its machines and by what `observe` saw; pure."""

from __future__ import annotations

from collections.abc import Mapping

from pai_install.checks.check import Check, unique

_RUNTIME = "apply --phase runtime; journalctl --unit containerd --unit docker on that machine says why"
_NETWORK = "kubectl --namespace kube-flannel logs daemonset/kube-flannel; UDP port 8472 must be open between machines"


def _container(name: str, program: str, runtime: str) -> Check[None]:
    return Check(
        id=name,
        title=f"A container runs through {program} with {runtime}",
        judge=None,
        reads=f"the exit status of a busybox container started with {program}",
        rule="FAIL when its image cannot be pulled, or it does not end with status 42",
        remedy=_RUNTIME,
    )


def _from_a_pod(name: str, title: str, reads: str) -> Check[None]:
    return Check(
        id=name, title=title, judge=None, reads=reads, rule="FAIL after ten attempts without an answer", remedy=_NETWORK
    )


# what `verify` proves by using it
PROOFS: tuple[Check[None], ...] = (
    Check(
        id="swap-off",
        title="Swap is off",
        judge=None,
        reads="/proc/swaps",
        rule="FAIL for any swap; SKIP in a container, whose swap is its host's",
        source="kubelet (failSwapOn)",
        remedy="apply --phase base",
    ),
    Check(
        id="time-sync",
        title="chrony synchronises the clock",
        judge=None,
        reads="chronyc -n tracking",
        rule="FAIL without a source, or more than 0.1 s off, 20 s long",
        remedy="chronyc -n sources on this machine shows which servers answer; UDP port 123 must be open to them",
    ),
    _container("containerd-runc", "containerd", "runc"),
    _container("containerd-nvidia", "containerd", "the NVIDIA runtime"),
    _container("docker-runc", "Docker", "runc"),
    _container("docker-nvidia", "Docker", "the NVIDIA runtime"),
    Check(
        id="pod-start",
        title="A pod starts on every node",
        judge=None,
        reads="the status of a busybox pod on that node",
        rule="FAIL when it is not ready in time",
        remedy="kubectl describe node; journalctl --unit kubelet on that machine",
    ),
    Check(
        id="pod-network",
        title="Test pods can be made",
        judge=None,
        reads="kubectl apply of a namespace with a pod and a Service for every node",
        rule="FAIL when the API refuses them",
        remedy="kubectl --namespace kube-system logs of kube-controller-manager and kube-apiserver",
    ),
    _from_a_pod("cluster-dns", "The cluster's DNS answers on every node", "nslookup of kubernetes.default in a pod"),
    _from_a_pod("service", "A Service on another machine answers", "an HTTP request from a pod to the next node's pod"),
    Check(
        id="runtime-class-nvidia",
        title="A pod of RuntimeClass nvidia runs",
        judge=None,
        reads="the status of such a pod on every node with NVIDIA devices",
        rule="FAIL when it is not ready in time",
        remedy=_RUNTIME,
    ),
)
# what `status` and a run without work say of what they saw; `verify` asks all but the certificates
CONDITIONS: tuple[Check[None], ...] = (
    Check(
        id="api",
        title="The Kubernetes API answers",
        judge=None,
        reads="kubectl on the control planes; an HTTP request from a pod of every node",
        rule="FAIL when none answers",
        remedy="journalctl --unit kubelet on a control plane; ctr -n k8s.io tasks ls shows what runs",
    ),
    Check(
        id="node-ready",
        title="Every machine is a node, Ready, at the version of the plan",
        judge=None,
        reads="kubectl get nodes",
        rule="FAIL when it is not there, not Ready or at another version; WARN when it is cordoned or under pressure",
        remedy="journalctl --unit kubelet on the machine",
    ),
    Check(
        id="system-pods",
        title="The system's pods run",
        judge=None,
        reads="kubectl get pods of the namespaces that pai-install fills",
        rule="FAIL for one that is not ready",
        remedy="kubectl describe pod",
    ),
    Check(
        id="certificates",
        title="The cluster's certificates are valid for another month",
        judge=None,
        reads="the certificates below /etc/kubernetes",
        rule="FAIL when one has expired, WARN within 30 days, UNKNOWN when one cannot be read",
        remedy="sudo kubeadm certs renew all on that control plane, then restart its static pods",
    ),
    Check(
        id="node-identity",
        title="The cluster's nodes are the machines of layout.yaml",
        judge=None,
        reads="names, addresses and machine ids of the nodes, and those of the machines",
        rule="WARN for a node of no machine, a machine under another name, and one with another machine id than joined",
        remedy="write the machine into layout.yaml as it is, or kubectl drain and kubectl delete node",
    ),
    Check(
        id="fixed-setting",
        title="The site asks for nothing that the running cluster cannot take",
        judge=None,
        reads="what the control planes run with, and config.yaml and layout.yaml",
        rule="FAIL for a changed value of a setting that cannot change; plan, apply and verify refuse it",
        remedy="write the value back that runs; docs/site.md names the settings that cannot change",
    ),
)
CATALOGUE: Mapping[str, Check[None]] = {check.id: check for check in unique((*PROOFS, *CONDITIONS))}
