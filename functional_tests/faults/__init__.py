# SPDX-License-Identifier: Apache-2.0
"""Faults at every request: a proxy before a real API server, and a VNF instance whose life is led through it.

`campaign` leads many lives, each with one fault at one index of the requests of every verb, and compares what is on the
cluster with what a life without faults has left there.
"""
