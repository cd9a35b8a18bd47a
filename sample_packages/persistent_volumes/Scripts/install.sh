#!/bin/sh
# What a server needs, for images that have it: checks, and installs nothing. Replace it for images of your own; the document
# of the management driver has what it reads on standard input, and an example for Debian and Ubuntu.
set -eu
given=$(cat)
role=$(printf %s "$given" | sed -n 's/.*"role": "\([a-z_]*\)".*/\1/p')
nfs_server=$(printf %s "$given" | sed -n 's/.*"nfs_server": "\([a-z]*\)".*/\1/p')
case $role-$nfs_server in
storage_server-kernel) programs="exportfs mkfs.ext4" ;;
storage_server-ganesha) programs="ganesha.nfsd mkfs.ext4" ;;
nfs_client-*) programs="mount.nfs" ;;
*) programs="kubeadm kubelet kubectl containerd curl" ;;
esac
for program in $programs; do
  command -v "$program" >/dev/null || { echo "$program is not installed" >&2; exit 1; }
done
