# SPDX-License-Identifier: Apache-2.0
"""Parser of HTML reports."""

import json
import re
from html.parser import HTMLParser

VOID = {"meta", "br", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """Tags with their attributes, and the text; every tag must be closed in its turn."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self.open = [], "", []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "title", "script"):
            self.text += data

    def count(self, tag, kind=None):
        return sum(name == tag and kind in (None, *a.get("class", "").split()) for name, a in self.tags)


def plots_of(text):
    """Descriptions of the plots of a page, by name."""
    return json.loads(re.search(r'<script type="application/json" id="plots">(.*?)</script>', text, re.S)[1])["plots"]
