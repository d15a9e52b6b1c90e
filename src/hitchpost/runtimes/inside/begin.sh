#!/bin/sh
# In the container: opens the tmux session in which the agent runs. What goes wrong is told in the run's folder.
# begin.sh FOLDER COLUMNS ROWS
here=/hitchpost/bin
folder=$1

fail() {
    printf '%s\n' "$1" >"$folder/failed"
    exit 1
}

for program in tmux cat sleep; do
    command -v "$program" >/dev/null 2>&1 || fail "$program is not in the image"
done
case $(tmux -V) in
'tmux 1.'* | 'tmux 2.'* | 'tmux 3.0'* | 'tmux 3.1'*) fail "$(tmux -V) is in the image; 3.2 or newer is needed" ;;
esac
cd /workspace || fail '/workspace cannot be entered'
tmux kill-session -t agent 2>/dev/null
pane=$(
    tmux -u -f "$here/tmux.conf" new-session -d -P -F '#{pane_id}' -s agent -x "$2" -y "$3" \
        sh "$here/agent.sh" "$folder" 2>"$folder/said"
) || fail "tmux refused: $(cat "$folder/said")"
tmux set-option -w -t agent window-size manual # in the configuration it would end some versions of tmux at once
# The output first, then the agent: not a byte of it is missed. It is the keeper that lets the agent go.
tmux pipe-pane -t "$pane" "exec cat >$folder/out"
while tmux has-session -t agent 2>/dev/null; do # a client that somebody detached comes back
    tmux -C attach-session -t agent -f ignore-size,no-output <"$folder/keys" >/dev/null 2>&1
    sleep 1
done </dev/null >/dev/null 2>&1 & # or the engine waits for it, and keeps the next program that is to be started waiting
printf '%s\n' "$pane" >"$folder/ready"
