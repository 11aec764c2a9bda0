"""A model behind HTTP: a service with limits, and a page to try it on. Needs the extra ``longtail[serve]``."""
