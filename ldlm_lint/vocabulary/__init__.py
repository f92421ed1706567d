"""Names of torch, of frameworks and of Python used by the program model, each set defined once with its meaning."""
