"""The instructor's part of the suite: it replays submissions and scores them."""
