"""Addresses of git repositories, branches and folders that may be given to the git program."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

from app.core.masking import names_token

_HOST = r"(?:[A-Za-z0-9][A-Za-z0-9._-]*+(?<![._-])|\[[0-9A-Fa-f:.]+\])"
_USER = r"(?<![\w.-])[A-Za-z0-9_][A-Za-z0-9_.-]*+"
_PATH = r"/[^\s?#\\\x00-\x1f\x7f]+"
_WEB = re.compile(rf"https?://(?:[^\s/?#@\\]+@)?{_HOST}(?::\d{{1,5}})?{_PATH}")
_SSH = re.compile(rf"ssh://(?:{_USER}@)?{_HOST}(?::\d{{1,5}})?{_PATH}")
_SHORT = re.compile(rf"{_USER}@{_HOST}:(?!-)[^\s?#\\\x00-\x1f\x7f]+")
_FILE = re.compile(rf"file://{_PATH}")
_REF = re.compile(r"[\w][\w./+-]*")


def git_address(text: str) -> str:
    """The address. Raises ValueError for one that isn't https, http, ssh or file, or that git could take for something else."""
    if text and not any(form.fullmatch(text) for form in (_WEB, _SSH, _SHORT, _FILE)):
        raise ValueError(
            "isn't the address of a repository: write https://host/repo.git, ssh://git@host/repo.git, git@host:repo.git "
            "or file:///path"
        )
    return text


def git_branch(text: str) -> str:
    """The name of a branch or tag. Raises ValueError for what can't be one."""
    if text and (not _REF.fullmatch(text) or ".." in text or "//" in text or text.endswith(("/", ".", ".lock"))):
        raise ValueError("isn't the name of a branch or a tag")
    return text


def inner_folder(text: str) -> str:
    """The folder without slashes at its ends. Raises ValueError for one that leaves what it is in."""
    parts = text.strip("/").split("/")
    if text and (not text.isprintable() or "\\" in text or text.startswith("/") or {"", ".", ".."} & set(parts)):
        raise ValueError("isn't a folder: write it as docs or docs/en")
    return text.strip("/")


def is_web(address: str) -> bool:
    """True when the address is read over HTTP."""
    return urlsplit(address).scheme in ("http", "https")


def without_login(address: str) -> str:
    """The web address without user and password; the user of an ssh address is no secret."""
    parts = urlsplit(address)
    if not is_web(address) or "@" not in parts.netloc:
        return address
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def has_token(address: str) -> bool:
    """True when a parameter of the web address is a token, a password or a signature by its name."""
    return is_web(address) and any(names_token(name) for name, _ in parse_qsl(urlsplit(address).query))
