"""Hitchpost for agents: an MCP server on standard input and output. Only ``server`` loads the library for it."""
