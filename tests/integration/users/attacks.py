"""What a member tries: name of each attack -> the change that makes it of a good job. docs/security.md lists them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pai_install.scheduling.job_kinds import JOB, POD, JobKind
from pai_install.scheduling.job_queue import CLUSTER_LABEL, HIVED_SPEC, QUEUE_LABEL, QUEUE_NOTE
from pai_install.users.model import OWNER

Json = dict[str, Any]
Change = Callable[[Json, JobKind], object]
OWN = {"apiVersion": "batch/v1", "kind": "Job", "name": "own", "uid": "00000000-0000-0000-0000-000000000001"}


def templates_of(kind: JobKind, made: Json) -> Iterator[Json]:
    """The pod templates of a job, and a pod itself."""
    if kind is POD:
        yield made
    else:
        yield from below(made["spec"])


def below(value: Any) -> Iterator[Json]:
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        if isinstance(item, dict) and "containers" in item.get("spec", {}):
            yield item
        else:
            yield from below(item)


def pods(**fields: Any) -> Change:
    """Fields of each pod."""

    def change(made: Json, kind: JobKind) -> None:
        for one in templates_of(kind, made):
            one["spec"] |= fields

    return change


def containers(**fields: Any) -> Change:
    """Fields of the first container of each pod."""

    def change(made: Json, kind: JobKind) -> None:
        for one in templates_of(kind, made):
            one["spec"]["containers"][0] |= fields

    return change


def context(**fields: Any) -> Change:
    return containers(securityContext=fields)


def volume(**source: Any) -> Change:
    return pods(volumes=[{"name": "a", **source}])


def variable(**source: Any) -> Change:
    return containers(env=[{"name": "A", "valueFrom": source}])


def init(**fields: Any) -> Change:
    return pods(initContainers=[{"name": "a", "image": "none", **fields}])


def notes(**fields: Any) -> Change:
    """Labels and annotations of each pod."""

    def change(made: Json, kind: JobKind) -> None:
        for one in templates_of(kind, made):
            for name, values in fields.items():
                one["metadata"].setdefault(name, {}).update(values)

    return change


def metadata(**fields: Any) -> Change:
    """Metadata of the job, of which mappings are merged."""

    def change(made: Json, _: JobKind) -> None:
        for name, value in fields.items():
            if isinstance(value, dict):
                made["metadata"].setdefault(name, {}).update(value)
            else:
                made["metadata"][name] = value

    return change


def tolerate(key: str = "") -> Change:
    return pods(tolerations=[{"operator": "Exists", **({"key": key} if key else {})}])


PODS: Mapping[str, Change] = {
    # priorities and places
    "system-priority": pods(priorityClassName="system-node-critical"),
    "cluster-priority": pods(priorityClassName="system-cluster-critical"),
    "priority-of-the-site": pods(priorityClassName="site-services"),
    "node-name": pods(nodeName="master"),
    "tolerate-everything": tolerate(),
    "tolerate-control-plane": tolerate("node-role.kubernetes.io/control-plane"),
    "tolerate-cordon": tolerate("node.kubernetes.io/unschedulable"),
    "endless-grace": pods(terminationGracePeriodSeconds=10**9),
    # the kubelet asks for a member
    "probe-host": containers(livenessProbe={"httpGet": {"host": "127.0.0.1", "port": 10248}}),
    "probe-host-tcp": containers(startupProbe={"tcpSocket": {"host": "127.0.0.1", "port": 10250}}),
    "hook-host": containers(lifecycle={"postStart": {"httpGet": {"host": "127.0.0.1", "port": 10248}}}),
    "hook-host-init": init(
        restartPolicy="Always", lifecycle={"preStop": {"tcpSocket": {"host": "10.0.0.1", "port": 22}}}
    ),
    # the machine
    "host-folder": volume(hostPath={"path": "/"}),
    "host-network": pods(hostNetwork=True),
    "host-processes": pods(hostPID=True),
    "host-memory": pods(hostIPC=True),
    "host-port": containers(ports=[{"containerPort": 80, "hostPort": 80}]),
    "privileged": context(privileged=True),
    "privileged-init": init(securityContext={"privileged": True}),
    "raw-packets": context(capabilities={"add": ["NET_RAW"]}),
    "right-to-mount": context(capabilities={"add": ["SYS_ADMIN"]}),
    "all-capabilities": context(capabilities={"add": ["ALL"]}),
    "unmasked-proc": pods(
        hostUsers=False, containers=[{"name": "main", "image": "none", "securityContext": {"procMount": "Unmasked"}}]
    ),
    "apparmor-off": context(appArmorProfile={"type": "Unconfined"}),
    "apparmor-off-pod": pods(securityContext={"appArmorProfile": {"type": "Unconfined"}}),
    "apparmor-off-note": notes(annotations={"container.apparmor.security.beta.kubernetes.io/main": "unconfined"}),
    "selinux-type": context(seLinuxOptions={"type": "spc_t"}),
    "selinux-user-pod": pods(securityContext={"seLinuxOptions": {"user": "system_u"}}),
    "selinux-role-init": init(securityContext={"seLinuxOptions": {"role": "system_r"}}),
    "unsafe-sysctl": pods(securityContext={"sysctls": [{"name": "kernel.msgmax", "value": "65536"}]}),
    "device-claim": pods(resourceClaims=[{"name": "gpu", "resourceClaimName": "colleagues"}]),
    # data and keys of others
    "nfs-server": volume(nfs={"server": "nas", "path": "/speech"}),
    "inline-driver": volume(csi={"driver": "smb.csi.k8s.io"}),
    "iscsi-disk": volume(iscsi={"targetPortal": "10.0.0.1", "iqn": "iqn.2001-04.com.example:disk", "lun": 0}),
    "image-volume-of-others": volume(gitRepo={"repository": "https://example.com/a.git"}),
    "storage-login": volume(secret={"secretName": "storage-homes-g1"}),
    "secret-of-another": volume(secret={"secretName": "bob.key"}),
    "secret-in-projection": volume(projected={"sources": [{"secret": {"name": "bob.key"}}]}),
    "secret-as-variable": variable(secretKeyRef={"name": "bob.key", "key": "a"}),
    "secret-as-variables": containers(envFrom=[{"secretRef": {"name": "bob.key"}}]),
    "secret-in-init": init(envFrom=[{"secretRef": {"name": "bob.key"}}]),
    "login-of-another": pods(imagePullSecrets=[{"name": "bob.key"}]),
    "account-of-a-controller": pods(serviceAccountName="controller"),
    "old-account-field": pods(serviceAccount="controller", serviceAccountName="controller"),
    # etcd
    "large-command": containers(command=["sh", "-c", "a" * 70_000]),
    "large-arguments": containers(args=["a" * 700] * 100),
    "large-environment": containers(env=[{"name": f"E{number}", "value": "a" * 700} for number in range(100)]),
    "large-sources": containers(
        env=[
            {"name": f"E{number}", "valueFrom": {"configMapKeyRef": {"name": "a" * 200, "key": "b" * 200}}}
            for number in range(500)
        ]
    ),
    "large-probe": containers(livenessProbe={"exec": {"command": ["a" * 200_000]}}),
    "large-working-folder": containers(workingDir="/" + "a" * 200_000),
    "large-image": containers(image="a" * 200_000),
    "many-containers": pods(initContainers=[{"name": f"a{number}", "image": "none" * 20} for number in range(2_000)]),
    "many-volumes": pods(volumes=[{"name": f"a{number}", "configMap": {"name": "a" * 200}} for number in range(1_000)]),
    "many-mounts": pods(
        volumes=[{"name": "a", "emptyDir": {}}],
        containers=[
            {
                "name": "main",
                "image": "none",
                "volumeMounts": [{"name": "a", "mountPath": f"/{'a' * 200}{number}"} for number in range(1_000)],
            }
        ],
    ),
    "many-aliases": pods(hostAliases=[{"ip": "10.0.0.1", "hostnames": [f"{'a' * 60}.example.org"] * 3_000}]),
    "many-gates": pods(readinessGates=[{"conditionType": f"example.org/{number:050}"} for number in range(3_000)]),
    "many-pod-labels": notes(labels={f"example.org/{number:050}": "a" * 60 for number in range(1_500)}),
    "large-pod-notes": notes(annotations={"example.com/a": "b" * 40_000}),
    # what others do with pods
    "owner-of-pods-is-a-colleague": notes(labels={OWNER: "bob"}),
    "pods-of-a-kubeflow-job": notes(labels={"training.kubeflow.org/job-name": "bobs"}),
    "pods-of-a-jobset": notes(labels={"jobset.sigs.k8s.io/jobset-name": "bobs"}),
    "pods-of-a-volcano-job": notes(labels={"volcano.sh/job-name": "bobs"}),
    "pods-of-a-job": notes(labels={"batch.kubernetes.io/job-name": "bobs"}),
    "pods-of-an-old-job": notes(labels={"job-name": "bobs"}),
    "pods-of-a-controller": notes(labels={"controller-uid": OWN["uid"]}),
    "gang-of-a-colleague": notes(annotations={"scheduling.k8s.io/group-name": "bobs"}),
    "never-taken-back": notes(annotations={"volcano.sh/preemptable": "false"}),
    "never-taken-back-by-a-label": notes(labels={"volcano.sh/preemptable": "no"}),
    "volcano-gang-of-a-colleague": notes(annotations={"scheduling.volcano.sh/group-name": "bobs"}),
}
# labels by which the controller of a Job knows its pods are overwritten in its own ones
OF_JOBS = ("pods-of-a-job", "pods-of-an-old-job", "pods-of-a-controller")


def gang(name: str) -> Change:
    """A line of HiveD's annotation that names a gang."""

    def change(made: Json, _: JobKind) -> None:
        notes = made["metadata"]["annotations"]
        members = "  members:\n  - podNumber: 1\n    leafCellNumber: 1"
        notes[HIVED_SPEC] = f"{notes[HIVED_SPEC]}\naffinityGroup:\n{name}\n{members}"

    return change


def count(line: str) -> Change:
    """A line of HiveD's annotation in a gang of one's own."""
    return gang(f"  name: vision.gang\n  members:\n  - {line}")


GOOD_GANG = gang("  name: vision.gang")
GANGS: Mapping[str, Change] = {
    "gang-of-another-group": gang("  name: speech.gang"),
    "gang-without-a-namespace": gang("  name: gang"),
    "gang-in-quotes": gang("  name: 'speech.gang'"),
    "gang-of-openpai": gang("  name: alice~speech/default"),
    "countless-gang": count("podNumber: 2147483647"),
    "countless-gang-in-hexadecimal": count("podNumber: 0x7fffffff"),
    "countless-gang-with-underscores": count("podNumber: 2_147_483_647"),
    "countless-cells": count("leafCellNumber: 2147483647"),
    "gang-twice": gang("  name: vision.gang\n  name: speech.gang"),
    "gang-by-a-long-key": gang("  name: vision.gang\n  ? name\n  : speech.gang"),
    "gang-by-a-space": gang("  name: vision.gang\n  name : speech.gang"),
    "gang-by-a-merge": gang("  <<: *other\n  name: vision.gang"),
    "gang-by-a-second-group": gang("  name: vision.gang\naffinityGroup:\n  name: speech.gang"),
}

JOBS: Mapping[str, Change] = {
    "fake-owner": metadata(ownerReferences=[{**OWN, "controller": True}]),
    "orphan-finalizer": metadata(finalizers=["orphan"]),
    "endless-finalizer": metadata(finalizers=["example.com/keep"]),
    "owner-is-a-colleague": metadata(labels={OWNER: "bob"}),
    "virtual-cluster-of-others": metadata(labels={CLUSTER_LABEL: "speech"}),
    "workload-of-a-colleague": metadata(labels={"kueue.x-k8s.io/prebuilt-workload-name": "bobs"}),
    "stopped-by-a-colleague": metadata(annotations={"pai-install/stopped-by": "bob"}),
    "forged-warning": metadata(annotations={"pai-install/warned": "2026-01-01T00:00:00Z"}),
    "large-annotations": metadata(annotations={"example.com/a": "b" * 40_000}),
    "many-labels": metadata(labels={f"example.org/{number:050}": "a" * 60 for number in range(1_500)}),
    "many-owners": metadata(ownerReferences=[{**OWN, "name": f"{number:0200}"} for number in range(1_000)]),
}


def too_many(count: int) -> Change:
    """Controllers make a list of as many pods, and end by it."""

    def change(made: Json, kind: JobKind) -> None:
        spec = made["spec"]
        if kind is JOB:
            spec["parallelism"] = count
        for role in spec.get("tasks") or spec.get("replicatedJobs") or roles_of(spec):
            role["replicas"] = count

    return change


# of a job that is none of a single pod
NUMBERS: Mapping[str, Change] = {"countless-pods": too_many(2**31 - 1), "more-pods-than-a-group-has": too_many(10_001)}


def again(made: Json, kind: JobKind) -> None:
    """Another device for each pod."""
    for one in templates_of(kind, made):
        resources = one["spec"]["containers"][0].setdefault("resources", {})
        resources["limits"] = {"nvidia.com/gpu": "4"}


def roles_of(spec: Json) -> list[Json]:
    return [role for name, roles in spec.items() if name.endswith("ReplicaSpecs") for role in roles.values()]


def queue_field(made: Json, kind: JobKind) -> None:
    """The fields by which operators tell a queue and a priority."""
    if kind is JOB or kind.resource == "jobsets":
        made["spec"]["managedBy"] = "kueue.x-k8s.io/multikueue"
    elif kind.group == "batch.volcano.sh":
        made["spec"] |= {"queue": "spare", "priorityClassName": "prod"}
    else:
        made["spec"].setdefault("runPolicy", {})["schedulingPolicy"] = {"queue": "spare", "priorityClass": "prod"}


# labels by which a controller takes a pod for one of its own
ADOPTED = ("pods-of-a-kubeflow-job", "pods-of-a-jobset", "pods-of-a-volcano-job", *OF_JOBS)

# of a job that its queue counted
CHANGES: Mapping[str, Change] = {
    "more-devices": again,
    "more-pods": too_many(64),
    "other-priority": pods(priorityClassName="prod"),
    "other-queue": queue_field,
    "other-queue-note": notes(annotations={QUEUE_NOTE: "spare"}),
    "other-queue-label": metadata(labels={QUEUE_LABEL: "spare", CLUSTER_LABEL: "spare"}),
    **{name: JOBS[name] for name in ("fake-owner", "orphan-finalizer", "endless-finalizer", "owner-is-a-colleague")},
    **{name: PODS[name] for name in ADOPTED},
}
# labels without which no queue counts a job
UNQUEUED: Mapping[str, Sequence[str]] = {
    "no-queue": (QUEUE_LABEL,),
    "no-virtual-cluster": (CLUSTER_LABEL,),
    "neither": (QUEUE_LABEL, CLUSTER_LABEL),
}


_V1, _SPACE = "/api/v1", "/api/v1/namespaces/vision"
# what no member asks for, and how
FORBIDDEN: Sequence[tuple[str, str]] = [
    *(
        (f"{_SPACE}/{name}", "POST")
        for name in (
            "services",
            "endpoints",
            "events",
            "serviceaccounts",
            "serviceaccounts/default/token",
            "persistentvolumeclaims",
            "resourcequotas",
            "limitranges",
            "replicationcontrollers",
            "podtemplates",
        )
    ),
    *((f"{_V1}/{name}", "POST") for name in ("persistentvolumes", "namespaces", "nodes")),
    *(
        (f"/apis/{name}", "POST")
        for name in (
            "apps/v1/namespaces/vision/deployments",
            "apps/v1/namespaces/vision/daemonsets",
            "apps/v1/namespaces/vision/statefulsets",
            "apps/v1/namespaces/vision/replicasets",
            "batch/v1/namespaces/vision/cronjobs",
            "autoscaling/v2/namespaces/vision/horizontalpodautoscalers",
            "discovery.k8s.io/v1/namespaces/vision/endpointslices",
            "networking.k8s.io/v1/namespaces/vision/ingresses",
            "networking.k8s.io/v1/namespaces/vision/networkpolicies",
            "networking.k8s.io/v1/ingressclasses",
            "policy/v1/namespaces/vision/poddisruptionbudgets",
            "coordination.k8s.io/v1/namespaces/vision/leases",
            "coordination.k8s.io/v1/namespaces/kube-system/leases",
            "events.k8s.io/v1/namespaces/vision/events",
            "rbac.authorization.k8s.io/v1/namespaces/vision/roles",
            "rbac.authorization.k8s.io/v1/namespaces/vision/rolebindings",
            "rbac.authorization.k8s.io/v1/clusterrolebindings",
            "scheduling.k8s.io/v1/priorityclasses",
            "storage.k8s.io/v1/storageclasses",
            "resource.k8s.io/v1/namespaces/vision/resourceclaims",
            "resource.k8s.io/v1/namespaces/vision/resourceclaimtemplates",
            "resource.k8s.io/v1/deviceclasses",
            "admissionregistration.k8s.io/v1/validatingadmissionpolicies",
            "apiextensions.k8s.io/v1/customresourcedefinitions",
            "apiregistration.k8s.io/v1/apiservices",
            "certificates.k8s.io/v1/certificatesigningrequests",
            "authentication.k8s.io/v1/tokenreviews",
            "authorization.k8s.io/v1/subjectaccessreviews",
            "kueue.x-k8s.io/v1beta2/namespaces/vision/workloads",
            "kueue.x-k8s.io/v1beta2/namespaces/vision/localqueues",
            "scheduling.volcano.sh/v1beta1/namespaces/vision/podgroups",
            "scheduling.volcano.sh/v1beta1/queues",
            "bus.volcano.sh/v1alpha1/namespaces/vision/commands",
        )
    ),
    (f"{_SPACE}/secrets", "GET"),
    (f"{_SPACE}/secrets?watch=1", "GET"),
    (f"{_SPACE}", "PUT"),
    (f"{_SPACE}", "PATCH"),
    (f"{_SPACE}/finalize", "PUT"),
    (f"{_V1}/pods", "GET"),
    (f"{_V1}/configmaps?watch=1", "GET"),
    (f"{_V1}/namespaces/speech/pods", "GET"),
    (f"{_V1}/namespaces/speech/configmaps?watch=1", "GET"),
    (f"{_V1}/namespaces/kube-system/configmaps", "GET"),
    (f"{_V1}/nodes/worker/proxy/logs/", "GET"),
    ("/metrics", "GET"),
    ("/logs/", "GET"),
    ("/debug/pprof/", "GET"),
]

# ways to delete a job so that its pods stay
OPTIONS: Json = {"apiVersion": "v1", "kind": "DeleteOptions"}
ORPHANS: Mapping[str, tuple[str, Json | None]] = {
    "orphan-by-query": ("?propagationPolicy=Orphan", None),
    "orphan-by-body": ("", {**OPTIONS, "propagationPolicy": "Orphan"}),
    "orphan-by-an-old-field": ("", {**OPTIONS, "orphanDependents": True}),
    "orphan-by-default-of-batch": ("", None),
}
# changes of a Job that another job made
PARTS: Mapping[str, Any] = {
    "suspend": False,
    "activeDeadlineSeconds": 1,
    "backoffLimit": 0,
    "ttlSecondsAfterFinished": 0,
}
SUBRESOURCES = ("status", "scale")
OF_PODS = ("ephemeralcontainers", "resize", "status")
STARTED = ("exec?command=sh", "attach", "portforward?ports=22", "eviction", "binding", "proxy/")


@dataclass(frozen=True)
class Group:
    """Attacks of one operation. only: the schedulers where they mean something, empty for all."""

    operation: str
    names: Sequence[str]
    test: str
    only: Sequence[str] = ()


GROUPS: Sequence[Group] = (
    Group("create a job or a pod", tuple(PODS), "test_create"),
    Group("create a job that hides or grows", tuple(JOBS), "test_create"),
    Group("update, patch, or apply a job that waits or runs", tuple(CHANGES), "test_change"),
    Group("give a running pod of a job to another", ADOPTED, "test_running_pod_changes_hands"),
    Group("take a job out of its queue", tuple(UNQUEUED), "test_job_leaves_its_queue"),
    Group(
        "give devices to a suspended job",
        ("devices-before-it-begins",),
        "test_suspended_job_gets_devices_before_it_begins",
    ),
    Group("join the gang of another namespace", tuple(GANGS), "test_gang_of_another_namespace", ("hived",)),
    Group("delete a job without its pods", tuple(ORPHANS), "test_orphan"),
    Group("delete or change a part of a job", ("delete", *PARTS), "test_a_part_of_a_job"),
    Group(
        "write or open a subresource",
        tuple(name.partition("?")[0].strip("/") for name in (*SUBRESOURCES, *OF_PODS[:-1], *STARTED)),
        "test_scale_and_status",
    ),
    Group("end controllers by the number of pods", tuple(NUMBERS), "test_number_of_pods"),
    Group(
        "let a controller add pods",
        ("elastic-metrics",),
        "test_a_job_that_grows_by_itself",
        ("kueue", "volcano", "default"),
    ),
    Group(
        "use cores and memory outside queues, beyond a limit of the site",
        ("no-class", "class-of-the-group", "no-request"),
        "test_pods_outside_queues_name_their_class_and_what_they_ask_for",
    ),
    Group(
        "look like a part of a queue",
        ("empty-queue-label", "queue-note", "scheduler-of-the-job", "number-in-place-of-a-class"),
        "test_nothing_else_looks_like_a_queue",
    ),
    Group(
        "pass the limit of pods outside queues",
        ("request-of-the-pod", "request-of-init", "memory-alone", "limits-alone", "pods-of-a-job-in-turn"),
        "integration/users/test_unqueued.py::test_no_request_is_left_out",
    ),
    Group("fill etcd with names of clients", ("many-managers",), "test_number_of_field_managers"),
    Group("create the authority that pods trust", ("root-authority",), "test_the_authority_of_pods_is_not_a_users"),
    Group("report its own state", ("forged-status",), "test_a_status_of_a_member_is_dropped"),
    Group(
        "create, change, read, or watch what members do not have",
        tuple(f"{method} {path.rpartition('/v1/')[2]}" for path, method in FORBIDDEN),
        "test_objects_of_no_member",
    ),
)
