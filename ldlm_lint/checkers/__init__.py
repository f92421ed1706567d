"""The rules: a file each in the folder of its family; what hands them settings, scripts and configurations stands beside them."""
