"""`python -m longtail` is the command `longtail`."""

from longtail.cli import main

if __name__ == "__main__":
    main()
