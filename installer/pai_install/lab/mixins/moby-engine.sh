# Docker of a package that pai-install does not know: a stand-in for moby-engine, whose dockerd only sleeps
folder=$(mktemp -d)
chmod 755 "$folder"
mkdir -p "$folder/DEBIAN" "$folder/usr/bin" "$folder/usr/lib/systemd/system"
cat > "$folder/DEBIAN/control" <<'END'
Package: moby-engine
Version: 25.0.3-stand-in
Architecture: all
Maintainer: a stand-in <stand-in@example.org>
Description: stand-in for the package moby-engine
END
printf '#!/bin/sh\nexec sleep infinity\n' > "$folder/usr/bin/dockerd"
chmod 755 "$folder/usr/bin/dockerd"
printf '[Service]\nExecStart=/usr/bin/dockerd\n' > "$folder/usr/lib/systemd/system/docker.service"
dpkg-deb --build "$folder" /root/moby-engine.deb >/dev/null
dpkg --install /root/moby-engine.deb >/dev/null
rm -r "$folder"
systemctl daemon-reload
systemctl start docker.service
