"""Out-of-memory errors: what a log says of one, and what a dump and a log say together."""
