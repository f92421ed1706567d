"""The rules: a file each in the folder of its family; beside them is what gives them settings, scripts and configurations."""
