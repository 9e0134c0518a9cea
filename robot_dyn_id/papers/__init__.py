"""Published identifications: inputs and special steps of one paper in each module; all the rest is the package's own."""
