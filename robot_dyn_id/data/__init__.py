"""Recordings as values: chunks of samples, sequences of chunks, and views on them."""
