"""Kubernetes infra-driver for Tacker that manages custom resources of any kind."""
