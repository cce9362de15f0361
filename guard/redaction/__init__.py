"""What a secret looks like, as tables and small pure scanners. `guard.redact` is the face; import that."""
