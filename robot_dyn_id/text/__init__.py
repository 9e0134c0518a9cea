"""Text files: bounded reading, safe YAML, atomic writing."""
