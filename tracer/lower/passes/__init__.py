"""The passes, one per file."""
