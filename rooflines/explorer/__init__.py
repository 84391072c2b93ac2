"""The interactive page: choices become a question, studies answer it, charts show it."""
