module bed.test/istio

go 1.26.0

// Nothing is built of it: its manifests are read.
require istio.io/api v1.31.1
