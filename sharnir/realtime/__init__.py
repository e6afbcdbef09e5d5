"""Real time: the loop with deadlines (`loop`), frames for other processes (`board`)."""
