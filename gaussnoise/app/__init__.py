"""The page in a browser, for those who do not program: ``gaussnoise app``.

The page computes no statistics and stores no data of its own. All that the page shows comes from a
project folder. The command line and Python use the same folder.
"""
