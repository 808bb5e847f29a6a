"""`harness serve`: practise in a browser, on a page of this machine."""
