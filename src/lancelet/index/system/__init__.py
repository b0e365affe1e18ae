"""System indexes: those that belong to no field."""
