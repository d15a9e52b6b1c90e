"""Runs AI coding agents as sessions that can be trusted."""

__version__ = "0.1.0"
