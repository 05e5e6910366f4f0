"""Does `mews conform` name what is wrong with a box, and nothing else? Sixty boxes, separate servers behind proxies,
each judged by the command itself, reading only and with changes; see ``__main__`` for the command."""
