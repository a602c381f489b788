project = "Lumora"
version = "2.4"
release = "2.4.1"
extensions = ["sphinx.ext.extlinks", "sphinx_design"]
extlinks = {"issue": ("https://bugs.example.org/%s", "issue %s")}
rst_prolog = ".. |product| replace:: Lumora Storage\n"
highlight_language = "console"
raise_if_run = open("/nonexistent") if False else None
