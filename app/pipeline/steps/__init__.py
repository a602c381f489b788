"""The steps that every assistant needs, one file each: detect, refine, keywords, retrieve, relevance, synthesize, cite.

Made by app.pipeline.registry; steps know the runner's types and not each other's order.
"""
