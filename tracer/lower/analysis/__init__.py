"""What passes ask of the IR; nothing here changes it."""
