"""What several tests share: made-up classes and runs, small experiments, readers of pages, marks."""
