"""Define what all commands share: options, messages and the handling of errors."""
