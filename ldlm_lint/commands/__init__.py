"""The subcommands, one module each: what they run and what they print."""
