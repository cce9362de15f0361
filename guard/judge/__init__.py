"""Text in, decision out. Pure: no files, no processes, no sockets, no clock, no environment."""
