"""Onishi and Hayashi, ECIR 2025: closed-form ridge regression."""
