"""The page of a run: its data, its charts and its templates; `run_page` is the way in."""
