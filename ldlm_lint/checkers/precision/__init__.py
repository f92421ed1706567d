"""Rules of the family 78: precision, compilation and losses."""
