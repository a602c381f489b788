"""From a model's text to what readers get: safe Markdown, numbered citations, links to sections, quotations.

Called by the steps synthesize and cite; imports app.core, app.text and app.index.
"""
