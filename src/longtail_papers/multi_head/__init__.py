"""Liang et al., TPAMI 2025: short heads in place of one output per label."""
