#!/bin/sh
# What kubeadm would check and set is the host's.
case "$$1 $$2" in "init "* | "join "*) systemctl start images ;; esac
case "$$1 $$2" in
"init phase") exec $kubeadm "$$@" ;;
"init "*)
  file=$$(printf '%s\n' "$$@" | sed --quiet --expression 's/^--config=//p' --expression '/^--config$$/{n;p}')
  if [ -n "$$file" ] && ! grep --quiet KubeProxyConfiguration "$$file"; then
    cat /etc/kubernetes/kube-proxy.yaml >>"$$file"
  fi
  exec $kubeadm "$$@" --ignore-preflight-errors=all
  ;;
"join "*) exec $kubeadm "$$@" --ignore-preflight-errors=all ;;
*) exec $kubeadm "$$@" ;;
esac
