"""Levels as plain numbers, as the judge counts with them: `guard.types.Level` is what leaves it."""

R0, R1, R2, R3 = 0, 1, 2, 3
LEVELS = {"R0": R0, "R1": R1, "R2": R2, "R3": R3}
