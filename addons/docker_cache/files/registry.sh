# Starts the registry of one upstream, which is the first argument. What it keeps is root's alone, as the private images are.
umask 077
set -a
. /config/environment
exec /bin/registry serve "/config/registry-$0.yml"
