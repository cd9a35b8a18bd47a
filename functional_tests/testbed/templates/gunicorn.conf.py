# SPDX-License-Identifier: Apache-2.0
# The application is named here, for Keystone takes gunicorn's arguments for its own.
wsgi_app = "keystone.wsgi.api:application"
bind = "$address:$port"
workers = 1
worker_class = "gthread"
threads = 16
