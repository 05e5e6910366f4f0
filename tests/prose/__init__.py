"""The words of what users read: helps, errors, pages."""
