"""The page of a run: its data, charts and templates. `run_page` is the entry point."""
