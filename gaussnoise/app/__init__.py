"""The page in a browser, for those who do not program: ``gaussnoise app``.

It has no statistics and no state of its own. All that it shows comes from a project folder, which
the shell and Python use too.
"""
