"""`opsx` as a person would use it: who asks is set to person, whatever the tests themselves run under. Takes argv."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from cli import opsx, surroundings

surroundings.actor = lambda: "person"
sys.exit(opsx.main(sys.argv[1:]))
