"""Being told, once, when a session needs a person: what is news, what was told already, and the ways to tell it."""
