"""Tables for other programs, written record by record as the kind of file that their names say."""
