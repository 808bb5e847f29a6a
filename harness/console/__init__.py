"""Shared parts of all commands: options, messages and errors."""
