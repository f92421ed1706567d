"""Before and after: a command on two trees, in interleaved rounds, with paired statistics."""
