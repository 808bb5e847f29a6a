"""Run a course: course files, kits, the instructor's decisions, exports, and a demo."""
