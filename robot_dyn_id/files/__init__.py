"""Files of settings and results: typed reading and writing of YAML."""
