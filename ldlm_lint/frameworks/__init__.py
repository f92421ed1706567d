"""The settings of training frameworks, in any file or command: recognised and judged in one place."""
