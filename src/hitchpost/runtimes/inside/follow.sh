#!/bin/sh
# Fed by tmux with a pane's output, after some of it went by unseen: shows the pane as it is, then all that comes.
# In mode 20 a line feed begins a new line, as the lines of capture-pane want it.
printf '\033[H\033[2J\033[20h%s\033[20l' "$(tmux capture-pane -p -e -t "$1")"
tmux display-message -p -t "$1" '#{cursor_y} #{cursor_x}' | {
    read -r row column
    printf '\033[%d;%dH' "$((row + 1))" "$((column + 1))"
}
exec cat
