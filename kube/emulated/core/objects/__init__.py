"""What becomes of objects: created, updated, patched, applied, deleted, by the rules of their kinds."""
