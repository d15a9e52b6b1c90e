"""Where agents work: git worktrees and plain folders, leased to one writer at a time."""
