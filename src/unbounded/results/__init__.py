"""What a simulation returns: numbers, tables, summaries and plots."""
