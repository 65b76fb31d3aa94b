#!/bin/sh
# Managed by pai-install: changes are overwritten.
# The driver by itself makes neither the device files that CUDA needs nor a description of its devices for container
# runtimes (CDI). Both are made here when the machine starts, and again when the driver or the slices of its GPUs (MIG)
# have changed. With the word "once" it ends after the first time.
set -u
description=/var/run/cdi/nvidia.yaml

driver() {
    modinfo -F version nvidia
    cat /proc/driver/nvidia/version
    ls -d /usr/lib/*/libnvidia-ml.so.* /dev/nvidia[0-9]* /proc/driver/nvidia/capabilities/gpu[0-9]*/mig/gi[0-9]*/ci[0-9]*
} 2>/dev/null

devices() {
    if command -v nvidia-modprobe >/dev/null; then
        timeout 60 nvidia-modprobe -u -c=0
    else
        timeout 60 nvidia-ctk system create-device-nodes --control-devices --load-kernel-modules
    fi || echo "the device files of CUDA could not be made" >&2
}

describe() {
    # a driver of a container or an appliance has no module that modinfo finds
    if ! modinfo -F version nvidia >/dev/null 2>&1 && [ ! -r /proc/driver/nvidia/version ]; then
        rm -f "$description"
        echo "there is no NVIDIA driver yet"
        return 0
    fi
    devices
    timeout 120 nvidia-ctk cdi generate --output="$description" || {
        rm -f "$description"
        echo "the devices could not be described: containers cannot ask for nvidia.com/gpu=all" >&2
        return 1
    }
}

if [ "${1-}" = once ]; then
    describe
    exit
fi
known=$(driver)
before=$known
pause=15
# what went wrong is tried again, ever more seldom
[ -e "$description" ] || [ -z "$known" ] || known=unknown
while sleep "$pause"; do
    now=$(driver)
    # an installation comes in steps: it is over when nothing has changed for a while
    if [ "$now" != "$known" ] && [ "$now" = "$before" ]; then
        if describe; then
            known=$(driver)
            pause=15
        elif [ "$pause" -lt 900 ]; then
            pause=$((pause * 2))
        fi
    fi
    before=$now
done
