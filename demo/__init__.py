"""What ``make demo`` runs: a small, real Spark job over the rooms of lancelet that stand today."""
