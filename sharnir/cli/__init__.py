"""The command `sharnir`: its arguments, and what each command does."""
