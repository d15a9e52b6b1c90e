"""The check-up of ``hitch doctor``: the machine, the state folder, sessions and workspaces, and their repair."""
