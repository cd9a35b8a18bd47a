#!/bin/sh
# What the load balancer needs, for images that have it: checks, and installs nothing. Replace it for images of your own, such as
# by `apt-get -q -y install haproxy iproute2`. HAProxy is configured and started by the management driver.
set -eu
for program in haproxy ss systemctl; do
  command -v "$program" >/dev/null || { echo "$program is not installed" >&2; exit 1; }
done
