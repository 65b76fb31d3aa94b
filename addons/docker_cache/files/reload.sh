# HAProxy reads its configuration and its certificate again when they have changed; connections stay.

seen() {
  busybox sha256sum /config/front.cfg /config/tls.pem
}

known=$(seen)
before=$known
while sleep 2; do
  now=$(seen)
  # both may change: it is over when nothing has changed for a while
  if [ "$now" != "$known" ] && [ "$now" = "$before" ]; then
    echo "the configuration changed: HAProxy reads it again"
    printf 'reload\n' | nc -w 10 127.0.0.1 9999 && known=$now
  fi
  before=$now
done
