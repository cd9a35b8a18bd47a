# SPDX-License-Identifier: Apache-2.0
"""A Kubernetes cluster on servers of a VNF instance, made and kept over SSH.

Each operation reads what is there (`facts`), decides purely what is to be done (`plan`), and does it (`run`). So the retry of
an operation does what is left of it, and a second run changes nothing.
"""
