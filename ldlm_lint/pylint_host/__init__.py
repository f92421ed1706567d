"""The plugin of pylint: the rules as checkers of pylint's, and the findings of one run of the engine as their messages."""
