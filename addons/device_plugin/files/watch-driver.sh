# The plugin looks for the driver once, when it starts. This ends it when the driver or the slices of its GPUs (MIG) have
# changed, and the kubelet restarts it; a container then gets the device files of that moment.

driver() {
  cat /sys/module/nvidia/version
  ls /host/usr/lib/*/libnvidia-ml.so.* /host/dev/nvidiactl /host/dev/nvidia[0-9]*
  # a slice has no device of its own: the driver names it here
  ls -d /proc/driver/nvidia/capabilities/gpu[0-9]*/mig/gi[0-9]*/ci[0-9]*
} 2>/dev/null

plugin() {
  for process in /proc/[0-9]*; do
    # the kernel keeps 15 characters of a name
    if [ "$(cat "$process/comm")" = nvidia-device-p ]; then
      echo "${process#/proc/}"
    fi
  done
} 2>/dev/null

known=$(driver)
before=$known
while sleep 15; do
  now=$(driver)
  # an installation comes in steps: it is over when nothing has changed for a while
  if [ "$now" != "$known" ] && [ "$now" = "$before" ]; then
    echo "the driver or its slices came, went or changed: the plugin restarts"
    # shellcheck disable=SC2046 # one word per process
    kill $(plugin) && known=$now
  fi
  before=$now
done
