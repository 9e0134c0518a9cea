"""What every node is built on: parameters, diagnostics, start and end."""
