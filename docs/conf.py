import evenhand

project = "evenhand"
author = "The evenhand developers"
copyright = "2026, the evenhand developers"
version = release = evenhand.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx-mathjax-offline",  # equations show without a network
    "numpydoc",
]
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
exclude_patterns = ["_build", "reproduction"]
# scikit-learn's own docstrings, inherited by the classifier, point into its documentation
suppress_warnings = ["ref.ref"]
html_theme = "furo"
html_title = "evenhand"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
