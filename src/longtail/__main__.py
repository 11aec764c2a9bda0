"""`python -m longtail` is the command `longtail`.

As with every `python -m`, Python then looks for modules in the working directory first. In a folder whose files you do
not trust use the command, or `python -I -m longtail`.
"""

from longtail.cli import main

if __name__ == "__main__":
    main()
