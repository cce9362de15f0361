"""Conversations on disk: written line by line, read with distrust, resumed, copied, listed, shown and thrown away."""
