"""The settings of training frameworks, whatever file or command they are written in: recognised, and decided upon once."""
