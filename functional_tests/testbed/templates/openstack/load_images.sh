# containerd of the machines' root folder loads the archives into an empty folder, the store.
root=$root
mount --bind $$root $$root
mount --types proc proc $$root/proc
mount --types tmpfs tmpfs $$root/run
mount --types tmpfs tmpfs $$root/mnt
mkdir $$root/mnt/store
mount --bind $store $$root/mnt/store
cd $$root
# Without kubelet's interface, which looks for networks.
cat >run/containerd.toml <<END
version = 2
root = "/mnt/store"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
END
chroot . containerd --config=/run/containerd.toml &
until chroot . ctr version >run/version 2>&1; do
  kill -0 $$!
  sleep 0.1
done
for archive in $archives; do
  chroot . ctr --namespace=k8s.io images import - <$$archive
done
kill $$!
wait $$! || true
