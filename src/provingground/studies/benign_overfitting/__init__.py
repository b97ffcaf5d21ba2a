"""Benign and harmful overfitting of a two-layer vision transformer."""
