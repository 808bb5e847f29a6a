"""Never comes to an end."""

while True:
    pass
