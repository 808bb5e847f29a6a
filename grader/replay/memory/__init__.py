"""The folder in which work is remembered: what lies there, when it was last used, and how it is kept small."""
