"""Why an archive cannot be taken."""


class Rejected(Exception):
    """An archive that cannot be taken: a code for machines, and one sentence for the student.

    `student` and `recipe` are the manifest's, where it could be read.
    """

    def __init__(
        self, code: str, message: str, student: str | None = None, recipe: str | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.student = student
        self.recipe = recipe
