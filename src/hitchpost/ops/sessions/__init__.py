"""Deeds: create, start, stop, restart, resume, recover, remove. One implementation for the CLI, the hub and MCP."""
