"""What was asked, approved, saved and done. Touches the state folder and nothing else."""
