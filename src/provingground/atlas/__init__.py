"""What is made of Datasets and verdicts for readers: the report, and records as JSON."""
