"""The instructor's half: it replays submissions and scores them."""
