"""What is true of a session and what it is called. Pure: no files, no clock, no processes."""
