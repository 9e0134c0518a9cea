"""Parts of the excitation publisher."""
