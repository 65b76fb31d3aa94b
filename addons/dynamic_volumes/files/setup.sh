set -eu
volumes=${VOL_DIR%/*}
# a folder made for volumes just now is closed to the machine's users: what is in it, anybody may write
[ -n "$(ls -A "$volumes")" ] || chmod 0700 "$volumes"
mkdir -m 0777 -p "$VOL_DIR"
