"""The rules of configuration files: what YAML, JSON, TOML, ``.env`` files and Dockerfiles are checked for."""
