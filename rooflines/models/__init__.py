"""Models: what layers they have, read from config files and checkpoint headers."""
