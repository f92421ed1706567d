"""Before and after: runs a command on two trees, in interleaved rounds, with paired statistics."""
