"""Types that stand between the guard and everything that talks: events, sessions with a brain, asking a person.

Values only, and an ask as text (`screen`): nothing here acts, prints or asks. It knows the guard's types and renderer.
"""
