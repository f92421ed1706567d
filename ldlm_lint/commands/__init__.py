"""The subcommands, a room each: what they run and what they print."""
