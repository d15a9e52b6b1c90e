"""The watcher: a process beside a keeper that knows one kind of agent. It may die; the keeper starts it again."""
