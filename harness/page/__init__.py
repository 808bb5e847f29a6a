"""The page of a run: its data, charts and templates. Callers use `run_page.write_run_page`."""
