"""Custom kinds: what their schemas must be, and what their objects are held against."""
