"""Settings of the documentation site: python -m sphinx -W --keep-going docs build/site

Why Sphinx with MyST and pydata-sphinx-theme, decided in November 2026. Material for MkDocs ends in 2027, MkDocs itself had its
last release in August 2024, and the successor of Material, zensical, is at version 0.1. Sphinx has been released for
eighteen years, is what Python, NumPy and PyTorch document themselves with, and writes a search index that works from a disk.
Of its themes pydata-sphinx-theme is kept by the projects of NumFOCUS, and PyTorch's own theme builds on it; measured on the
same four pages with axe-core 4, it had one kind of violation (a label, which our own search field does not have), furo
had four kinds. Both build these pages in under five seconds; pydata is 2.6 MB larger.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from website.pages import REPOSITORY  # noqa: E402

from ldlm_lint import __version__  # noqa: E402

project = "ldlm-lint"
author = "the ldlm-lint developers"
version = release = __version__
language = "en"
extensions = ["myst_parser", "website"]
root_doc = "index"
# What the tool prints is shown as it is.
smartquotes = False
templates_path = ["_templates"]
# Anchors of headings as GitHub makes them.
myst_heading_anchors = 4
# Examples of rules are broken on purpose: what no lexer reads is shown without colours.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "pydata_sphinx_theme"
html_title = "ldlm-lint"
html_baseurl = "https://ldlm-lint.github.io/ldlm-lint/"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_favicon = "_static/logo.svg"
html_copy_source = False
html_use_index = False
html_show_sourcelink = False
# Results would fetch their pages, which a browser refuses from a disk: website/search.py writes descriptions instead.
html_show_search_summary = False
html_sidebars = {"search": [], "**": ["site-sidebar.html"]}
html_theme_options = {
    "logo": {"text": "ldlm-lint", "image_light": "_static/logo.svg", "image_dark": "_static/logo.svg"},
    "navbar_start": ["navbar-logo"],
    "navbar_center": ["site-nav.html"],
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["site-search.html"],
    # The theme's own search dialog loads the whole index on every page.
    "disable_search": True,
    "article_header_start": [],
    "secondary_sidebar_items": {"**": ["page-toc"], "rules": [], "index": [], "search": []},
    "show_prev_next": False,
    "primary_sidebar_end": [],
    "footer_start": ["site-footer.html"],
    "footer_end": [],
    "back_to_top_button": False,
}
html_context = {"default_mode": "auto", "repository": REPOSITORY}
