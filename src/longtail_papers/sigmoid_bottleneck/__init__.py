"""Grivas et al., AAAI 2024: label sets that a narrow output layer can never give, and the DFT layer that cures it."""
