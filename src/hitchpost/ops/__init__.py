"""What can be done with sessions: one implementation for the CLI, the hub and MCP."""
