"""Which pages there are, and how they are fetched: sitemaps, directories, robots.txt, pace, the guard of addresses."""
