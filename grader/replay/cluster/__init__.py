"""Replays on the workers of a Dask cluster; nothing is shared with them but its scheduler."""
