"""Configuration files: YAML, JSON and TOML as documents with positions, ``.env`` files and Dockerfiles as settings."""
