"""Read pages -> the next generation: changes, duplicates, writing, the check against losses, the dry run.

Called by `page_reader`, `processing` and `run`; imports `split`, `convert` and `crawl`.
"""
