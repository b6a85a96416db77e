"""From Spyre-aware Triton to KTIR."""
