"""Parts of the API that are loaded with the first request for them."""
