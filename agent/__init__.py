"""What talks with people and models on top of the guard: one-shot questions, later the loop and the prompt."""
