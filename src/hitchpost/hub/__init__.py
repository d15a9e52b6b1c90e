"""The hub: watches every session, streams them to clients, and acts as time passes. It may be killed at any instant."""
