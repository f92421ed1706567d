"""The log formats that are known exactly, one room a family."""
