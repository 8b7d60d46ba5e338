#!/bin/sh
# After the package is installed or upgraded. The first start is the operator's,
# who first writes the address of the cluster into /etc/akin/akin.yml.
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart akin.service
fi
