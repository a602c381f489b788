"""Sources -> listed entries and their downloads: sitemaps, directories, robots.txt, pace, checked addresses.

Called by `convert` and `run`; imports no other stage.
"""

import sys

# the command line of httpx, which its package imports with rich and pygments where these are installed
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
