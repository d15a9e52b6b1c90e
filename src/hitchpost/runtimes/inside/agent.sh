#!/bin/sh
# In the pane: waits until its output is listened to, then runs the agent and writes down how it ended.
here=/hitchpost/bin
folder=$1
shift
read -r _ <"$folder/go"
while IFS= read -r word; do
    word=$(printf '%b.' "$word")
    set -- "$@" "${word%.}"
done <"$folder/argv"
while read -r name flag; do # an option that the image's own environment asks for
    eval "value=\${$name-}"
    for word in "$@"; do
        if [ "$word" = "$flag" ]; then value=; fi
    done
    if [ -n "$value" ]; then
        word=$1
        shift
        set -- "$word" "$flag" "$value" "$@"
    fi
done <"$folder/flags"

if command -v python3 >/dev/null 2>&1; then
    exec python3 -I -S "$here/waiter.py" "$folder" "$@"
fi
if ! command -v -- "$1" >/dev/null 2>&1; then
    printf '%s is not in the image\n' "$1" >"$folder/failed"
    exit 127
fi
trap : INT QUIT TERM HUP # caught, not ignored: the agent has its own way with them
sh "$here/named.sh" "$folder" "$@"
status=$?
[ -t 0 ] || printf 'yes\n' >"$folder/hung_up" # its terminal has gone before it: many a program calls that a good end
printf '%s\n' "$status" >"$folder/exit_status"
