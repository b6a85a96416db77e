"""Tables and pages for people. Nothing is imported here: the tools on files need none of the pipeline."""
