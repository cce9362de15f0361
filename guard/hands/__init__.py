"""What touches a machine: the sandbox, child processes, targets."""
