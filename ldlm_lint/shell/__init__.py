"""The shell front end: scripts become assignments, expansions and launcher commands, and findings."""
