"""Shell text in, a small typed tree out. Pure: no files, no environment, no clock."""
