"""Parts and forms of web addresses."""

import re
from functools import lru_cache
from urllib.parse import urljoin, urlsplit, urlunsplit

RAW_SUFFIXES = (".md", ".mdx")
_SAME_PAGE = re.compile(r"(?:(?<=/)index)?(?:\.html?)?/?$")


def joined(base: str, href: str) -> str:
    """The absolute address, or an empty string where it can't be parsed."""
    try:
        url = urljoin(base, href.strip())
        urlsplit(url)
    except ValueError:
        return ""
    return str(url)


@lru_cache(maxsize=10_000)  # asked for many times a page
def public_url(url: str) -> str:
    """The address for readers: without .md, .mdx or index.md, which return raw text, and without fragment."""
    parts = urlsplit(url)
    path = parts.path
    for suffix in RAW_SUFFIXES:
        path = path.removesuffix(f"index{suffix}") if path.endswith(f"/index{suffix}") else path.removesuffix(suffix)
    return urlunsplit(parts._replace(path=path, fragment=""))


def stem(url: str) -> str:
    """Returns what the usual addresses of a page share: a folder and its index, with and without `.html` or the last slash."""
    return _SAME_PAGE.sub("", url).rstrip("/")


@lru_cache(maxsize=10_000)
def origin(url: str) -> str:
    """Scheme, host and port: robots.txt and pace belong to them."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()


def host(url: str) -> str:
    """Host and port; a default port is omitted."""
    parts = urlsplit(url)
    name = parts.netloc.rpartition("@")[2].lower()
    return name.removesuffix({"http": ":80", "https": ":443"}.get(parts.scheme, "\x00"))
