"""Parts of the recorder."""
