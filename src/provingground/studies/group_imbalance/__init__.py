"""Group imbalance: a one-hidden-layer network on a Gaussian mixture of groups."""
