"""The page: labs and runs, plainly, for any browser, without a build step."""
