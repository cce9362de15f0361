"""What `opsagent install` is made of: the entries of each host, edits that keep a file's own text, and the check-up."""
