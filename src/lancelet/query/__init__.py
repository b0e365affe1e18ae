"""Questions to tables: scans, takes, counts and searches, planned, carried out and explained."""
