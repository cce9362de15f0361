"""Model APIs behind one small protocol (`base.Provider`); each module knows one wire format."""
