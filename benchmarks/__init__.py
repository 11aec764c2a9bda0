"""Benchmarks: longtail side by side with its peers, and its parts against reference implementations."""
