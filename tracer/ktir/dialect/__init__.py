"""The `ktdp` dialect and what KTIR uses of others that xDSL does not have."""
