#!/bin/sh
# Says its process id and becomes the agent.
folder=$1
shift
printf '%s\n' "$$" >"$folder/pid"
export HITCHPOST_INSIDE=agent # it, and whatever it starts, is found by this mark
exec "$@"
