"""Sphinx's settings of the site; make_site.py calls Sphinx with them."""

project = "Muster"
copyright = "the Muster authors; Apache License 2.0"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "index"

myst_heading_anchors = 4  # links name sections as forges do: page.md#the-section
html_theme = "furo"
html_title = "Muster"
html_static_path = ["../../build/site-source/_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"
highlight_language = "none"
