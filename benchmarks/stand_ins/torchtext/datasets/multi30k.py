"""Addresses that programs change before they load the data set."""

URL: dict[str, str] = {}
MD5: dict[str, str] = {}
