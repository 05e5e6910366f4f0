"""Parts of the API beside its core; the rules of a kind are loaded with the first of its objects."""
