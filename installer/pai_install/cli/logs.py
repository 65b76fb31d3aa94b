"""`pai-install logs`: logs of nodes, services, pods, and jobs."""

from __future__ import annotations

import click

from pai_install.app.context import App
from pai_install.app.logs import ReadLogs, read_logs
from pai_install.cli.command import reading


@click.command
@reading(ReadLogs)
def command(*, app: App, request: ReadLogs) -> int:
    """Print the log of a node, a service, a pod, or a job.

    NODE: the journals of kubelet, container runtimes, and pai-install's services on a machine. SERVICE: kubelet,
    containerd, docker, registry, job-recorder, gpu-meter, etcd, kube-apiserver, and others on all of their machines, or
    the pods of an add-on. POD: [NAMESPACE/]NAME. JOB: [GROUP/]NAME. A name with several meanings needs its kind, for
    example node/NAME. With several logs each line begins with its source.

    An unreachable machine does not stop the others, and the exit code is 5. Control characters are escaped, except tabs
    and line ends. With --format json each line is one JSON object.
    """
    return read_logs(app, request)
