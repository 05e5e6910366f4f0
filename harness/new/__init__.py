"""What ``mews new`` writes: a folder of templates per kind, in which NAME, MODULE and CLASS are filled in."""
