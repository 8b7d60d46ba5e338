#!/bin/sh
# Runs before the package is removed ("remove" in deb, 0 in rpm) or upgraded, and
# stops akin only on removal.
case "$1" in
  remove | 0) if [ -d /run/systemd/system ]; then systemctl disable --now akin.service; fi ;;
esac
