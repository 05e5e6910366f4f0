"""The HTTP face: requests, media types, answers, discovery, streams."""
