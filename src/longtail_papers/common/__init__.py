"""What the experiments of all papers share: benchmarks, records, claims, tables, and runs side by side."""
