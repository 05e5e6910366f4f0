"""The distribution as users get it: built, installed outside the repository, and used there."""
