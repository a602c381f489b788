"""A documentation site of one made-up product in Czech, English and German: which pages are translations is known.

`content` has the pages and the questions, `site` serves them in the ways in which real sites arrange their languages.
"""
