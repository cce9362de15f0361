"""Argument parsing and printing for the two launchers. Nothing below this package prints or asks."""
