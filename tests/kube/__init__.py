"""A real Kubernetes cluster on one machine, for tests: see README.md."""
