"""Names of torch, of frameworks and of Python that the program model knows, each set once and with what it stands for."""
