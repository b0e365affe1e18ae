"""Tables: one version opened, and the next one committed."""
