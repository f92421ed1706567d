"""Rules about memory and the time of the host."""
