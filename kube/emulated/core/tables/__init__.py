"""Tables, as kubectl shows lists."""
