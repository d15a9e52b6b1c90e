"""What a terminal shows: the output log read back, screens, recordings, and text that is safe to print."""
