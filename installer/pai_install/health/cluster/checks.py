"""Declarations of the cluster checks. Modules on the machines and the observation provide the results. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from pai_install.checks.check import Check, unique
from pai_install.ports import VXLAN_PORT
from pai_install.schedulers.self_test.guarantees import PROMISES

_RUNTIME = "run apply --phase runtime, and check journalctl -u containerd -u docker on that machine"
_NETWORK = (
    f"run kubectl -n kube-flannel logs daemonset/kube-flannel. UDP port {VXLAN_PORT} must be open between machines"
)


def _container(name: str, program: str, runtime: str) -> Check[None]:
    return Check(
        id=name,
        title=f"A container runs through {program} with {runtime}",
        judge=None,
        reads=f"the exit status of a busybox container started with {program}",
        rule="FAIL when the image cannot be pulled, or the container does not end with status 42",
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
        rule="FAIL when any swap is active. SKIP in a container, where swap belongs to the host",
        source="kubelet (failSwapOn)",
        remedy="run apply --phase base",
    ),
    Check(
        id="time-sync",
        title="chrony synchronises the clock",
        judge=None,
        reads="chronyc -n tracking",
        rule="FAIL when, after 20 s, no source is selected or the offset is above 0.1 s",
        remedy="run chronyc -n sources on this machine to list the servers that answer. Open UDP port 123 to them",
    ),
    _container("containerd-runc", "containerd", "runc"),
    _container("containerd-nvidia", "containerd", "the NVIDIA runtime"),
    _container("docker-runc", "Docker", "runc"),
    _container("docker-nvidia", "Docker", "the NVIDIA runtime"),
    Check(
        id="system-images",
        title="System containers run the planned images",
        judge=None,
        reads="crictl ps and crictl images, and the images that role system_images pinned in containerd",
        rule="WARN for a container whose image has another digest: it was started before its tag was repaired. UNKNOWN "
        "when containerd does not answer",
        remedy="run crictl stop CONTAINER on that machine. The kubelet restarts it from the planned image",
    ),
    Check(
        id="pod-start",
        title="A pod starts on every node",
        judge=None,
        reads="the status of a busybox pod on that node",
        rule="FAIL when the pod is not ready in time",
        remedy="check kubectl describe node, and journalctl --unit kubelet on that machine",
    ),
    Check(
        id="verify-sample",
        title="Number of nodes with test pods",
        judge=None,
        reads="the number of nodes",
        rule="SKIP on a large cluster, where test pods run on an even sample of the nodes",
        remedy="run verify --limit MACHINES to test other machines",
    ),
    Check(
        id="pod-network",
        title="Test pods can be created",
        judge=None,
        reads="kubectl apply of a namespace with a pod and a Service for every node",
        rule="FAIL when the API server refuses the objects",
        remedy="read the logs of kube-controller-manager and kube-apiserver in namespace kube-system",
    ),
    _from_a_pod("cluster-dns", "The cluster's DNS answers on every node", "nslookup of kubernetes.default in a pod"),
    _from_a_pod("service", "A Service on another machine answers", "an HTTP request from a pod to the next node's pod"),
    Check(
        id="runtime-class-nvidia",
        title="A pod of RuntimeClass nvidia runs",
        judge=None,
        reads="the status of a pod of that class on every node with NVIDIA devices",
        rule="FAIL when the pod is not ready in time",
        remedy=_RUNTIME,
    ),
)
# what the verbs of `registry` prove
REGISTRIES: tuple[Check[None], ...] = (
    Check(
        id="registry-reachable",
        title="A machine reaches the registry in its hosts.toml",
        judge=None,
        reads="GET /v2/ at the first endpoint of /etc/containerd/certs.d/UPSTREAM/hosts.toml, with its login and CA",
        rule="FAIL when the registry does not answer or rejects the login ten times",
        remedy="run registry show to list the differences on this machine, and apply --phase registries to repair them",
    ),
    Check(
        id="registry-pull",
        title="containerd pulls an image in the same way as pods",
        judge=None,
        reads="ctr images pull with the machine's own hosts.toml, in a namespace that is emptied afterwards",
        rule="FAIL when the pull fails",
        remedy="run registry status to check the cache and its upstreams",
    ),
    Check(
        id="registry-warm",
        title="The cache has an image",
        judge=None,
        reads="the image's manifest and layers, read through the cache once",
        rule="FAIL when one of them cannot be read",
        remedy="run registry status to check the cache and its upstreams",
    ),
    Check(
        id="registry-copy",
        title="The cache's content is complete at its new path",
        judge=None,
        reads="every file of the cache, and the digest of every copied blob",
        rule="WARN when a blob does not match its digest. The blob is not copied",
        remedy="no action is required. The cache downloads the blob again on demand",
    ),
    Check(
        id="registry-cache",
        title="The cache answers and reports its use",
        judge=None,
        reads="the counters of each upstream's registry since its start, and the size of its folder",
        rule="FAIL when the cache does not answer",
        remedy="run kubectl --namespace pai-docker-cache describe pods",
    ),
    Check(
        id="registry-content",
        title="The cache stays within its size limit",
        judge=None,
        reads="size and last use of cached content, the limit, and the free space of the disk",
        rule="FAIL when unused content cannot be deleted. WARN when the disk is still too full afterwards",
        remedy="free space on the disk of docker_cache_fs_mount_path, and read journalctl --unit pai-docker-cache-gc",
    ),
)
# what `storage test` proves, and what a plan finds
STORAGES: tuple[Check[None], ...] = (
    Check(
        id="storage-claim",
        title="The claim of a granted storage is bound",
        judge=None,
        reads="kubectl get persistentvolumeclaims in the namespaces of the groups",
        rule="FAIL for a claim that is missing or not Bound",
        remedy="run pai-install apply",
    ),
    Check(
        id="storage-adoption",
        title="A manually created claim matches the storage of the same name",
        judge=None,
        reads="the PVs and PVCs of the cluster, before storages are applied",
        rule="FAIL when the PV of such a PVC has another path, or is an in-tree azureFile or "
        "flexVolume. A PVC with the same path is adopted",
        remedy="rename the storage, or set its path to that of the PV",
    ),
    Check(
        id="storage-mount",
        title="A worker mounts a storage",
        judge=None,
        reads="the status and the events of a pod of a group that may mount it, on that worker",
        rule="FAIL when the mount fails for 30 s or times out. UNKNOWN when the worker cannot start a pod. SKIP "
        "for a storage without a granted group",
        remedy="check journalctl --unit kubelet on the machine, the server, and the network between them",
    ),
    Check(
        id="storage-use",
        title="A worker can use a mounted storage",
        judge=None,
        reads="a pod that writes, syncs, reads, compares, and deletes 16 MiB, or tries to write to a read-only storage",
        rule="FAIL when a step fails or hangs, the data differ, or a read-only storage is writable",
        remedy="check owner, mode, and free space of the folder, the server, and dmesg on the machine",
    ),
)
# what is kept of a cluster and its site
BACKUPS: tuple[Check[None], ...] = (
    Check(
        id="backup",
        title="A backup is complete",
        judge=None,
        reads="the hash of etcd's snapshot, and of every file in the backup",
        rule="FAIL when a hash differs. The backup is deleted",
        remedy="check pai-install status, then run pai-install backup again",
    ),
    Check(
        id="site-state",
        title="The cluster has a copy of the site's state on the controller host",
        judge=None,
        reads="the secret kube-system/pai-install-site",
        rule="WARN when the API rejects it",
        remedy="run pai-install backup once the API answers",
    ),
)
# what `scheduler test` shows with jobs of its own
SCHEDULERS: tuple[Check[None], ...] = tuple(promise.check for promise in PROMISES.values())
# what `status`, `verify` and a run without work say of what they saw
CONDITIONS: tuple[Check[None], ...] = (
    Check(
        id="api",
        title="The Kubernetes API answers",
        judge=None,
        reads="kubectl on the control planes, and an HTTP request from a pod of every node",
        rule="FAIL when no control plane answers",
        remedy="check journalctl --unit kubelet, and ctr -n k8s.io tasks ls on a control-plane node",
    ),
    Check(
        id="node-ready",
        title="Every machine is a Ready node at the planned version",
        judge=None,
        reads="kubectl get nodes",
        rule="FAIL when the node is missing, not Ready or at another version. WARN when the node is cordoned or "
        "under pressure",
        remedy="check journalctl --unit kubelet on the machine",
    ),
    Check(
        id="system-pods",
        title="The system pods are ready",
        judge=None,
        reads="kubectl get pods of the namespaces of pai-install",
        rule="FAIL for a pod that is not ready",
        remedy="run kubectl describe pod",
    ),
    Check(
        id="certificates",
        title="Certificates of cluster, registries, and administrator are valid for 30 more days",
        judge=None,
        reads="certificates below /etc/kubernetes, /var/lib/kubelet/pki and /etc/pai-install, those in the kubeconfig "
        "and registry.json of the controller host",
        rule="FAIL when one has expired. WARN within 30 days. UNKNOWN when one cannot be read",
        remedy="run pai-install certs show to list them, and pai-install certs renew to renew the control plane",
    ),
    Check(
        id="upgrade-left",
        title="All nodes have the versions of the last upgrade",
        judge=None,
        reads="versions of Kubernetes, containerd, runc and the NVIDIA toolkit on the machines",
        rule="WARN while nodes have older versions than other nodes",
        remedy="run pai-install upgrade to continue the upgrade. The message contains the command",
    ),
    Check(
        id="node-identity",
        title="Nodes match the machines of layout.yaml",
        judge=None,
        reads="names, addresses, and machine ids of nodes and machines",
        rule="WARN for a node without a machine, a machine under another name, and a machine id that changed after "
        "the join",
        remedy="correct the machine in layout.yaml, or run kubectl drain and kubectl delete node",
    ),
    Check(
        id="fixed-setting",
        title="The site does not change settings that are fixed in the running cluster",
        judge=None,
        reads="the settings of the running control planes, config.yaml, and layout.yaml",
        rule="FAIL for a new value of a fixed setting. plan, apply, and verify reject it",
        remedy="restore the running value in the site. docs/site.md lists the fixed settings",
    ),
)
CATALOGUE: Mapping[str, Check[None]] = {
    check.id: check for check in unique((*PROOFS, *REGISTRIES, *STORAGES, *BACKUPS, *SCHEDULERS, *CONDITIONS))
}
