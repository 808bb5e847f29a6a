"""Code for running a course: course files, kits for students, the instructor's decisions, exports, and a demo."""
