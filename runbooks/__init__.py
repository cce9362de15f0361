"""Checks that need no model: each reads a few files and programs, and says what is wrong in English or Chinese."""
