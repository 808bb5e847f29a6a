"""Views of the scores: pages, gradebook, exports, terminal. Nothing here decides anything."""
