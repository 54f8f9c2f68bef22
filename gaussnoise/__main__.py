"""The module behind ``python -m gaussnoise``, which is the ``gaussnoise`` command."""

from .cli import main

if __name__ == "__main__":
    main()
