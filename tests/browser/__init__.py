"""What a web page in the user's own browser can do to a session: nothing."""
