"""The old database comes in: read-only on its side, only what is missing on ours (DESIGN 8.1)."""
