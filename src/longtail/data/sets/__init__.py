"""Named data sets: the catalogue, what it fetches, and the embedded corpus."""
