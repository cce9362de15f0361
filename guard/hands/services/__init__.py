"""What is no file and can be read and put back: families of states, each a table of reads and the way back from them.

Everything in this package is pure: a family names the commands that read a state, makes a value from what they say,
and builds the commands that turn one value into another. `acting.states` runs them.
"""

from guard.hands.services.base import NOT_INSTALLED, Family, Inverse, Read, Said, State, Unreadable, WayBack
from guard.hands.services.families import FAMILIES, family_of

__all__ = [
    "FAMILIES",
    "NOT_INSTALLED",
    "Family",
    "Inverse",
    "Read",
    "Said",
    "State",
    "Unreadable",
    "WayBack",
    "family_of",
]
