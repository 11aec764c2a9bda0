"""Barezi et al., NAACL 2019: a few labels that represent all."""
