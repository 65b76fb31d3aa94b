# control groups of version 2 alone; refused where the controller host's kernel governs by version 1
if [ ! -e /sys/fs/cgroup/cgroup.controllers ]; then
    echo "the controller host mounts control groups of version 1, and a kernel has each controller in one place only" >&2
    exit 1
fi
