# SPDX-License-Identifier: Apache-2.0
"""Programs and manifests of other projects, built from pinned sources: for the sample packages and the functional tests.

`go/` pins the Go modules, `programs` compiles them, `controllers` says which program is which released image, and
`manifests` renders what the projects release. Nothing here depends on the tests, the samples or the driver.
"""
