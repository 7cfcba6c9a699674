"""Tasks: sources whose documents are problems with one right answer, which alone is predicted."""
