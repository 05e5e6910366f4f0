"""The software under test, a folder per published system."""
