"""The mechanism of an API server: store, verbs, admission, tables and wire. It names no kind."""
