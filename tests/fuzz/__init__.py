"""Coverage-guided fuzzing of the front ends and the fixers; ``python tests/fuzz/run.py --help``."""
