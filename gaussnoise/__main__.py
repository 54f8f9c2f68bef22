"""The program ``python -m gaussnoise``, the same as the command ``gaussnoise``."""

from .cli import main

if __name__ == "__main__":
    main()
