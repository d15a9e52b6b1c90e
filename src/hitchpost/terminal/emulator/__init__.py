"""The processes in which a terminal emulator, a native library, reads what agents write. They may die."""
