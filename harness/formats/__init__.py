"""Read TOML and YAML files that people write."""
