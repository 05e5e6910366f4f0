"""Of mews doctor."""
