"""Read pages -> the next generation: changes, duplicates, writing, the check against losses, the dry run.

Called by `run`; `page_reader` takes one page through the stages. Imports `split`, `convert` and `crawl`.
"""
