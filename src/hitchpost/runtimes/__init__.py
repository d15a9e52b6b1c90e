"""Where a run lives. Each runtime is one module; ``base`` is what they have in common."""
