"""An agent that speaks the Agent Client Protocol, on pipes: this program is its client, and the session's agent."""
