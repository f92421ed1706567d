"""Training logs: what their lines say, as series, and what is wrong with a run. Free of torch."""
