"""What `execution` is made of: the world of a run, and one module for each kind of act.

`execution` is its face; beside it, what asks a person knows what is bound (`approving`) and what a rollback plan is.
"""
