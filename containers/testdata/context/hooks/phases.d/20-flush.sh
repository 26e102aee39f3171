#!/bin/sh
echo "second phase, $DRAINIT_REASON"
