"""A machine that already runs something before pai-install sees it: what an admin may have made of it by hand."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

# what the admin wrote: none of it may get lost, and what the cluster needs stands beside it
DAEMON = {
    "debug": True,
    "labels": ["rack=b7"],
    "insecure-registries": ["registry.corp.example:5000"],
    "log-opts": {"labels": "team"},
    "runtimes": {"quiet": {"path": "/usr/bin/runc", "runtimeArgs": ["--log-format=json"]}},
}
CONTAINERD = '\n# of the admin\n[metrics]\n  address = "127.0.0.1:1338"\n'
CHRONY = "\n# of the admin\nserver 192.0.2.123 iburst\n"
# accepts nothing new and refuses one port that nobody uses: a rule to recognise, in both ways of writing them
NFT_RULES = """
table inet admin {
    chain input {
        type filter hook input priority 0; policy accept;
        tcp dport 9999 drop comment "of the admin"
    }
}
"""
# as Docker itself, ufw or firewalld leave it
FORWARD_POLICY = "-P FORWARD DROP"
# of a pod network that was there before, and would come first in the alphabet
CNI_FILE = "/etc/cni/net.d/05-old.conflist"
CNI = {"cniVersion": "0.4.0", "name": "old", "plugins": [{"type": "bridge", "bridge": "old0"}]}
# a stand-in for a GPU: a device of that name in a container, which is the machine's /dev/null
GPU_STAND_IN = "/dev/nvidia7"
IPTABLES_RULE = "INPUT -p tcp --dport 9998 -m comment --comment of-the-admin -j DROP"

SCRIPT = f"""set -e
export DEBIAN_FRONTEND=noninteractive
apt-get -q -y update >/dev/null
apt-get -q -y --no-install-recommends install docker.io docker-cli chrony nftables iptables busybox-static >/dev/null
mkdir -p /etc/docker
cat > /etc/docker/daemon.json <<'END'
{json.dumps(DAEMON, indent=2)}
END
cat >> /etc/containerd/config.toml <<'END'
{CONTAINERD}
END
cat >> /etc/chrony/chrony.conf <<'END'
{CHRONY}
END
# the clock of a lab machine is the box's
grep -q 'DAEMON_OPTS="-x ' /etc/default/chrony || sed -i 's/^DAEMON_OPTS="/DAEMON_OPTS="-x /' /etc/default/chrony
# units of Docker before version 23 require containerd
mkdir -p /etc/systemd/system/docker.service.d
printf '[Unit]\\nRequires=containerd.service\\n' > /etc/systemd/system/docker.service.d/old-unit.conf
systemctl daemon-reload
mkdir -p {CNI_FILE.rpartition("/")[0]}
echo '{json.dumps(CNI)}' > {CNI_FILE}
systemctl restart chrony containerd
systemctl restart docker
nft -f - <<'END'
{NFT_RULES}
END
iptables -C {IPTABLES_RULE} 2>/dev/null || iptables -A {IPTABLES_RULE}
iptables {FORWARD_POLICY}
root=$(mktemp -d)
mkdir $root/bin
cp /usr/bin/busybox $root/bin/
ln -s busybox $root/bin/sh
tar -C $root -c . | docker import - of-the-admin:1 >/dev/null
docker inspect at-work >/dev/null 2>&1 || docker run -d --name at-work --label owner=admin -p 127.0.0.1:8088:80 \\
    --device /dev/null:{GPU_STAND_IN} of-the-admin:1 \\
    /bin/sh -c 'exec 3< {GPU_STAND_IN}; while true; do busybox date >> /beats; busybox sleep 1; done' >/dev/null
sha256sum /etc/docker/daemon.json /etc/containerd/config.toml /etc/chrony/chrony.conf > /root/as-the-admin-left-them
"""


@dataclass(frozen=True)
class Container:
    """What tells whether a container is still the very same: its id, its start, its process on the machine."""

    identity: str
    started: str
    pid: int
    restarts: int


def container(inspected: str) -> Container:
    """From the output of `docker inspect NAME`. Raises AssertionError when it does not run."""
    one: dict[str, Any] = json.loads(inspected)[0]
    assert one["State"]["Running"], one["State"]
    return Container(one["Id"], one["State"]["StartedAt"], one["State"]["Pid"], one["RestartCount"])
