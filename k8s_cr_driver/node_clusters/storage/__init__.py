# SPDX-License-Identifier: Apache-2.0
"""Persistent volumes of a cluster: directories of Cinder volumes, which a storage server exports over NFS.

It is part of the operation of either way to make the cluster, and stands on the same rooms: `facts` are read, `plan` decides
purely, `run` does it.
"""
