"""The types of built-in and custom kinds, and what bodies are held against them."""
