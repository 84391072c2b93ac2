"""Tables of published and reported speedups and acceptance: read, predicted from facts alone, judged."""
