#!/bin/sh
# What a node needs, for images that have it: checks, and installs nothing. Replace it for images of your own; the document
# of the management driver has what it reads on standard input, and an example for Debian and Ubuntu.
set -eu
for program in kubeadm kubelet kubectl containerd curl haproxy keepalived; do
  command -v "$program" >/dev/null || { echo "$program is not installed" >&2; exit 1; }
done
