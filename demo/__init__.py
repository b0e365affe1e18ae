"""What ``make demo`` runs: a pipeline on Spark over texts that every machine has, and what the table is good for."""
