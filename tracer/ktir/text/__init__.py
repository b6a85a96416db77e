"""KTIR text: parsing, printing, and what a text that does not parse needs to hear."""
