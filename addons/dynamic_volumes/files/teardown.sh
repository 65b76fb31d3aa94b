set -eu
rm -rf "$VOL_DIR"
