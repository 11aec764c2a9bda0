"""Tags of rows as tables for other programs: one record for each row or each tag, in a file of the kind of its name."""
