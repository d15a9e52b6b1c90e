"""The keeper: one small process per run. Parent of the agent, writer of its log and of the truth about its end."""
