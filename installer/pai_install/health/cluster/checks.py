"""Declarations of the cluster checks. Modules on the machines and the observation provide the results. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from pai_install.checks.check import Check, unique
from pai_install.ports import VXLAN_PORT
from pai_install.schedulers.self_test.guarantees import PROMISES

_RUNTIME = "apply --phase runtime; journalctl --unit containerd --unit docker on that machine says why"
_NETWORK = (
    f"kubectl --namespace kube-flannel logs daemonset/kube-flannel; UDP port {VXLAN_PORT} must be open between machines"
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
        rule="FAIL for any swap; SKIP in a container, where swap belongs to the host",
        source="kubelet (failSwapOn)",
        remedy="apply --phase base",
    ),
    Check(
        id="time-sync",
        title="chrony synchronises the clock",
        judge=None,
        reads="chronyc -n tracking",
        rule="FAIL when, after 20 s, no source is selected or the offset is above 0.1 s",
        remedy="chronyc -n sources on this machine shows which servers answer. UDP port 123 must be open to them",
    ),
    _container("containerd-runc", "containerd", "runc"),
    _container("containerd-nvidia", "containerd", "the NVIDIA runtime"),
    _container("docker-runc", "Docker", "runc"),
    _container("docker-nvidia", "Docker", "the NVIDIA runtime"),
    Check(
        id="system-images",
        title="Containers of the system run from the planned images",
        judge=None,
        reads="crictl ps and crictl images; what role system_images pinned in containerd",
        rule="WARN for a container whose image has another digest: it was started before its tag was repaired; UNKNOWN "
        "when containerd does not answer",
        remedy="crictl stop CONTAINER on that machine: the kubelet starts it from the planned image",
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
        title="On how many nodes test pods were started",
        judge=None,
        reads="the number of nodes",
        rule="SKIP on a cluster so large that test pods are started on an even sample of its nodes",
        remedy="verify --limit tests the machines that are named",
    ),
    Check(
        id="pod-network",
        title="Test pods can be created",
        judge=None,
        reads="kubectl apply of a namespace with a pod and a Service for every node",
        rule="FAIL when the API server refuses the objects",
        remedy="kubectl --namespace kube-system logs of kube-controller-manager and kube-apiserver",
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
        title="A machine reaches the registry that its hosts.toml names",
        judge=None,
        reads="GET /v2/ at the first endpoint of /etc/containerd/certs.d/UPSTREAM/hosts.toml, with its login and CA",
        rule="FAIL when, after ten attempts, no registry answers there or it does not accept the login",
        remedy="registry show lists the differences on this machine. Repair it with apply --phase registries",
    ),
    Check(
        id="registry-pull",
        title="containerd pulls an image as pods do",
        judge=None,
        reads="ctr images pull with the machine's own hosts.toml, in a namespace that is emptied afterwards",
        rule="FAIL when the pull fails",
        remedy="registry status shows the cache and its upstreams",
    ),
    Check(
        id="registry-warm",
        title="The cache has an image",
        judge=None,
        reads="the image's manifest and layers, read through the cache once",
        rule="FAIL when one of them cannot be read",
        remedy="registry status shows the cache and its upstreams",
    ),
    Check(
        id="registry-copy",
        title="The content of the cache is in its new place",
        judge=None,
        reads="every file of the cache, and the digest of every blob that is copied",
        rule="WARN when a blob is not what its name says: it is left out",
        remedy="the cache fetches it again when it is asked for",
    ),
    Check(
        id="registry-cache",
        title="The cache answers and says how it is used",
        judge=None,
        reads="the counters of each upstream's registry since it started, and the size of its folder",
        rule="FAIL when the cache does not answer",
        remedy="kubectl --namespace pai-docker-cache describe pods",
    ),
    Check(
        id="registry-content",
        title="The cache keeps within its limit",
        judge=None,
        reads="size and last use of what its folder keeps, its limit, and the room on its disk",
        rule="FAIL when what is unused cannot be dropped; WARN when the disk stays too full without what may go",
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
        remedy="pai-install apply",
    ),
    Check(
        id="storage-adoption",
        title="A claim that was made by hand is the storage of its name",
        judge=None,
        reads="the PVs and PVCs of the cluster, before storages are applied",
        rule="FAIL for a PVC of a granted storage's name whose PV is another place, or an in-tree azureFile or "
        "flexVolume; one of the same place is taken over",
        remedy="give the storage another name, or write that place into it",
    ),
    Check(
        id="storage-mount",
        title="A worker mounts a storage",
        judge=None,
        reads="the status and the events of a pod of a group that may mount it, on that worker",
        rule="FAIL when the mount fails for 30 s or does not come in time; UNKNOWN when the worker starts no pod; SKIP "
        "for a storage that no group may mount",
        remedy="check journalctl --unit kubelet on the machine, the server, and the network between them",
    ),
    Check(
        id="storage-use",
        title="A worker can use a storage that is mounted",
        judge=None,
        reads="16 MiB that a pod writes, syncs, reads back, compares and removes; of a read-only one what is refused",
        rule="FAIL when a step fails or hangs, the data differ, or a read-only storage can be written to",
        remedy="check owner, mode, and free space of the folder, the server, and dmesg on the machine",
    ),
)
# what is kept of a cluster and its site
BACKUPS: tuple[Check[None], ...] = (
    Check(
        id="backup",
        title="A backup is whole",
        judge=None,
        reads="the hash of etcd's snapshot, and of every file in the backup",
        rule="FAIL when one differs: then there is no backup",
        remedy="check pai-install status, then run pai-install backup again",
    ),
    Check(
        id="site-state",
        title="The cluster keeps a copy of what the controller host alone knows of the site",
        judge=None,
        reads="the secret kube-system/pai-install-site",
        rule="WARN when the API does not take it",
        remedy="pai-install backup, when the API answers",
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
        reads="kubectl on the control planes; an HTTP request from a pod of every node",
        rule="FAIL when no control plane answers",
        remedy="check journalctl --unit kubelet, and ctr -n k8s.io tasks ls on a control-plane node",
    ),
    Check(
        id="node-ready",
        title="Every machine is a Ready node at the planned version",
        judge=None,
        reads="kubectl get nodes",
        rule="FAIL when the node is missing, not Ready or at another version; WARN when the node is cordoned or "
        "under pressure",
        remedy="journalctl --unit kubelet on the machine",
    ),
    Check(
        id="system-pods",
        title="The system pods run",
        judge=None,
        reads="kubectl get pods of the namespaces that pai-install fills",
        rule="FAIL for a pod that is not ready",
        remedy="kubectl describe pod",
    ),
    Check(
        id="certificates",
        title="The certificates of cluster, registries and administrator are valid for another month",
        judge=None,
        reads="certificates below /etc/kubernetes, /var/lib/kubelet/pki and /etc/pai-install, those in the kubeconfig "
        "and registry.json of the controller host",
        rule="FAIL when one has expired, WARN within 30 days, UNKNOWN when one cannot be read",
        remedy="pai-install certs show lists them. Renew those of the control plane with pai-install certs renew",
    ),
    Check(
        id="upgrade-left",
        title="All nodes have the versions of the last upgrade",
        judge=None,
        reads="versions of Kubernetes, containerd, runc and the NVIDIA toolkit on the machines",
        rule="WARN while nodes have older ones than another node",
        remedy="pai-install upgrade continues the upgrade. The message gives the whole command",
    ),
    Check(
        id="node-identity",
        title="The cluster's nodes are the machines of layout.yaml",
        judge=None,
        reads="names, addresses and machine ids of the nodes, and those of the machines",
        rule="WARN for a node without a machine, a machine under another name, and a machine id that changed after "
        "the join",
        remedy="correct the machine in layout.yaml, or kubectl drain and kubectl delete node",
    ),
    Check(
        id="fixed-setting",
        title="The site changes no setting that is fixed in the running cluster",
        judge=None,
        reads="the settings of the running control planes; config.yaml and layout.yaml",
        rule="FAIL for a changed value of a setting that cannot change; plan, apply and verify refuse it",
        remedy="restore the running value in the site. The page docs/site.md lists the settings that cannot change",
    ),
)
CATALOGUE: Mapping[str, Check[None]] = {
    check.id: check for check in unique((*PROOFS, *REGISTRIES, *STORAGES, *BACKUPS, *SCHEDULERS, *CONDITIONS))
}
