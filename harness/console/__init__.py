"""What the commands share: options, and how they print messages and errors."""
