"""API references of documentation generators, called by `clean`."""
