"""What `execution` is made of: the world of a run, and one module for each kind of act. Only `execution` knows it."""
