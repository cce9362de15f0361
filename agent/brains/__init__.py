"""Which brains there are, with which keys, in which order, and how a conversation moves from one to the next."""
