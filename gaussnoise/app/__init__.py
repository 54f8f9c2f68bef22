"""The page in a browser, for those who do not program: ``gaussnoise app``.

It computes no statistics and stores no data of its own. All that it shows comes from a project
folder, which the command line and Python use too.
"""
