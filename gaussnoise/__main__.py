"""``python -m gaussnoise`` is the ``gaussnoise`` command."""

from .cli import main

if __name__ == "__main__":
    main()
