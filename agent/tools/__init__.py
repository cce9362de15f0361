"""Tools that only a conversation has."""
