"""A run that several processes share: each reads and embeds its part of the pages, and one of them merges, checks and publishes.

A shard keeps with the store what reading a page brought (`reading`), and the finishing step is an ordinary run that takes it
from there (`kept`). `shared` knows which shards are done. Called by `run`; imports `page_reader` and everything below it.
"""
