"""What can be asked, by REST and event streams; each endpoint with its rule."""
