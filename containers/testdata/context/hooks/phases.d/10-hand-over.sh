#!/bin/sh
# drainit: max-duration=1s
echo "phase by $(busybox id -u), the workload is $DRAINIT_WORKLOAD"
