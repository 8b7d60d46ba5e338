#!/bin/sh
# Runs after the package is installed or upgraded. It does not start akin the first
# time: write the address of the cluster into /etc/akin/akin.yml before.
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart akin.service
fi
