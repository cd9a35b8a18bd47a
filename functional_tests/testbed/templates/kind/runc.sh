#!/bin/sh
# Debian's runc, for containers that ask for every capability: a host that is itself a machine of another may not have
# CAP_SYS_RESOURCE, which then cannot be given to anybody. A process of `exec` has a file of its own.
without() {
  kept=$$(jq -c 'walk(if type == "array" then map(select(. != "CAP_SYS_RESOURCE")) else . end)' "$$1") || exit
  printf '%s' "$$kept" > "$$1"
}
bundle= before= starts=
for argument; do
  case $$before in
    --bundle|-b) bundle=$$argument ;;
    --process|-p) without "$$argument" ;;
  esac
  case $$argument in create|run) starts=yes ;; esac
  before=$$argument
done
if [ "$$starts" ] && [ "$$bundle" ]; then without "$$bundle/config.json"; fi
exec /usr/sbin/runc "$$@"
