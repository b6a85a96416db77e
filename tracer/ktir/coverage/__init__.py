"""What a function reads, writes and sums over all cores and loops, found without its arithmetic."""
