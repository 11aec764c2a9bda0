"""Shen et al., ICML 2020: labels known only for groups of rows."""
