"""Tests with Tacker's own objects run in a process of their own: importing them patches sockets with eventlet.

As tacker-conductor does, the threading backend of oslo.service is chosen before anything of Tacker is imported.
"""

from oslo_service import backend

backend.init_backend(backend.BackendType.THREADING)
