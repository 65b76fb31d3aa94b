#!/bin/sh
# Packages that stand in for the NVIDIA driver's, under Debian's names and with nothing of NVIDIA's in them.
set -eu
folder=$1
mkdir -p "$folder"

stand_in() { # stand_in NAME VERSION
    tree=$(mktemp -d)
    mkdir -p "$tree/DEBIAN" "$tree/usr/share/stand-in"
    printf 'Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: stand-in <root@localhost>\nDescription: stands in for a package of the NVIDIA driver\n' \
        "$1" "$2" >"$tree/DEBIAN/control"
    echo "$2" >"$tree/usr/share/stand-in/$1"
    if [ "$1" = nvidia-persistenced ]; then
        mkdir -p "$tree/usr/lib/systemd/system"
        printf '[Unit]\nDescription=Stands in for the NVIDIA persistence daemon\n[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n' \
            >"$tree/usr/lib/systemd/system/nvidia-persistenced.service"
    fi
    dpkg-deb --build --root-owner-group "$tree" "$folder/$1_${2#*:}_all.deb" >/dev/null
    rm -r "$tree"
}

for version in 550.163.01-1 550.200.00-1 535.247.01-1; do
    stand_in nvidia-smi "$version"
    stand_in libcuda1 "$version"
done
# the newest is not there of every package
stand_in nvidia-open-kernel-dkms 550.163.01-1
stand_in nvidia-open-kernel-dkms 535.247.01-1
stand_in nvidia-persistenced 550.54.14-1
cd "$folder"
dpkg-scanpackages --multiversion . >Packages
