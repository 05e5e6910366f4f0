"""Judges any chassis by its wire: a clause per rule of the contract, a verdict per clause (``mews conform``)."""
