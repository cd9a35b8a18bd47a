# SPDX-License-Identifier: Apache-2.0
# The services read the arguments of the process they are loaded into, which are gunicorn's.
import sys

sys.argv = ["$service-api", "--config-file", "$settings"]
wsgi_app = "$application:application"
bind = "$address"
workers = 1
worker_class = "gthread"
threads = 16
timeout = 300
graceful_timeout = 3
worker_tmp_dir = "/dev/shm"
control_socket_disable = True
