"""What finds machines and starts a host agent on each."""
