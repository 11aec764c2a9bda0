"""What the parts of the default training contribute: ``python -m benchmarks.ranking``."""
