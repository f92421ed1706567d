"""The rules of scripts: what a file of shell code is checked for."""
