"""What runs: one TOML file per agent."""
