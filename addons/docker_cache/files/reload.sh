# HAProxy reads its configuration and its certificate again when they have changed; connections stay.

seen() {
  busybox sha256sum /config/front.cfg /config/tls.pem
}

# at first of nothing: this container may have been started after a change that no one took over
known=
before=$known
while sleep 2; do
  now=$(seen)
  # both may change: it is over when nothing has changed for a while
  if [ "$now" != "$known" ] && [ "$now" = "$before" ]; then
    echo "the configuration changed: HAProxy reads it again"
    # HAProxy says Success=0 when it keeps the old one, and is asked again
    answer=$(printf 'reload\n' | nc -w 10 127.0.0.1 9999) && case $answer in
      *Success=0*) echo "HAProxy keeps the configuration it had: $answer" ;;
      *) known=$now ;;
    esac
  fi
  before=$now
done
