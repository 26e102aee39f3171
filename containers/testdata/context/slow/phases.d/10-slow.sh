#!/bin/sh
# drainit: max-duration=2400ms
sleep 2
