"""The program in a session's pod: process 1, and the server that hubs are linked to."""
