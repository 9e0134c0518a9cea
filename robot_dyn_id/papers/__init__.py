"""Published identifications: inputs and special steps of a paper in each module; the rest is the package's own."""
