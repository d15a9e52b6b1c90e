#!/bin/sh
# Says its process id and becomes the agent.
folder=$1
shift
printf '%s\n' "$$" >"$folder/.pid"
mv "$folder/.pid" "$folder/pid"
exec "$@"
