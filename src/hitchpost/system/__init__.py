"""The machine below: processes, control groups, descriptors, sockets. The keeper imports it, so it stays light."""
