"""Directives that read or name other files of the source."""

from __future__ import annotations

import posixpath
from fnmatch import fnmatchcase

from docutils import nodes
from docutils.parsers.rst.directives.misc import Include
from docutils.parsers.rst.directives.tables import CSVTable
from docutils.statemachine import StringList

from ingestion.convert.rst.env import env_of, labelled
from ingestion.convert.rst.files import plain, with_target
from ingestion.convert.rst.kept import Unknown
from ingestion.convert.rst.listing import listing


class Listing(Unknown):
    """`literalinclude`: the lines of a file below the source's root."""

    def run(self) -> list[nodes.Node]:
        """See docutils."""
        text = listing(env_of(self.state.document).files.read((self.arguments or [""])[0]), self.options)
        if not text.strip():
            return []
        block = nodes.literal_block("", text, classes=["code"], language=self.options.get("language", ""))
        caption = plain(self.options.get("caption", ""))
        return [*([labelled(caption)] if caption else []), block]


_WITHOUT_PARSER = {key: value for key, value in Include.option_spec.items() if key != "parser"}


class Included(Include):  # type: ignore[misc]
    """`include` of a file below the source's root."""

    option_spec = _WITHOUT_PARSER

    def run(self) -> list[nodes.Node]:
        """See docutils."""
        files, settings = env_of(self.state.document).files, self.state.document.settings
        if not files.read(self.arguments[0]):
            return []
        self.arguments[0] = str(files.tree.place(files.path(self.arguments[0])))
        settings.file_insertion_enabled = True
        try:
            return list(super().run())
        finally:
            settings.file_insertion_enabled = False


class Table(CSVTable):  # type: ignore[misc]
    """`csv-table`, also of a file below the source's root; never from the web."""

    def run(self) -> list[nodes.Node]:
        """See docutils."""
        if "url" in self.options:
            return []
        if name := self.options.pop("file", ""):
            text = env_of(self.state.document).files.read(name)
            if not text:
                return []
            self.content = StringList(text.splitlines(), source=name)
        return list(super().run())


class Toctree(Unknown):
    """Links to the pages that it lists, with their titles."""

    def run(self) -> list[nodes.Node]:
        """See docutils."""
        if "hidden" in self.options:
            return []
        files = env_of(self.state.document).files
        items: list[nodes.Node] = []
        for line in filter(None, (line.strip() for line in self.content)):
            title, target = with_target(line)
            if "://" in target:
                items.append(_item(title or target, target))
            elif "*" in target:
                wanted = posixpath.join(files.top if target.startswith("/") else files.folder, target.lstrip("/"))
                found = [one for one in files.titles.pages if fnmatchcase(posixpath.splitext(one)[0], wanted)]
                items += [_item(files.title(files.titles.pages[one]) or one, files.link(one)) for one in found]
            elif page := files.page(target.removesuffix(".rst")):
                items.append(_item(title or files.title(files.titles.pages.get(page, "")) or target, files.link(page)))
        caption = self.options.get("caption", "")
        made: list[nodes.Node] = [nodes.bullet_list("", *items)] if items else []
        return [labelled(plain(caption)), *made] if caption and made else made


def _item(title: str, address: str) -> nodes.list_item:
    return nodes.list_item("", nodes.paragraph("", "", nodes.reference("", title, refuri=address)))
