#!/usr/bin/env python3
"""page_figures.py PAGE.html REPORT.json: every figure of the page's text is a number of the JSON, rounded as the page says.

A figure is <… data-value="POINTER" data-digits="D" [data-scale="S"]>SHOWN</…>. Tiles, table, causes and bounds hold no other number, but
for words marked data-name.
"""
import json
import re
import sys
from html.parser import HTMLParser

REGIONS = {"headline", "tiles", "scaling", "base", "causes", "judged"}
EMPTY = {"meta", "br", "img"}


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.stack, self.figures, self.bare, self.text = [], [], [], ""

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        classes = set((attributes.get("class") or "").split())
        if tag in ("b", "li", "td", "div", "p"):
            self.end_text()
        if tag not in EMPTY:
            self.stack.append((tag, classes, attributes))
        if "data-value" in attributes:
            self.figures.append([attributes, ""])

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        self.end_text()
        assert self.stack and self.stack[-1][0] == tag, (self.getpos(), self.stack[-1:], tag)
        self.stack.pop()

    def handle_data(self, data):
        marked = [a for _, _, a in self.stack if "data-value" in a or "data-name" in a]
        if marked:
            if "data-value" in marked[-1]:
                self.figures[-1][1] += data
            return
        classes = set().union(*(c for _, c, _ in self.stack)) if self.stack else set()
        if classes & REGIONS and not any(tag in ("th", "i", "style") for tag, _, _ in self.stack):
            self.text += data

    def end_text(self):
        if re.search(r"(?<![A-Za-z0-9_])\d", self.text):
            self.bare.append(self.text)
        self.text = ""


def find(document, pointer):
    for part in pointer.split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        document = document[int(part)] if isinstance(document, list) else document[part]
    return document


def main():
    page = Page()
    page.feed(open(sys.argv[1], encoding="utf-8").read())
    document = json.load(open(sys.argv[2], encoding="utf-8"))
    wrong = [f"a number of no value: {text!r}" for text in page.bare]
    for attributes, shown in page.figures:
        try:
            value = find(document, attributes["data-value"]) * float(attributes.get("data-scale", 1))
        except (KeyError, IndexError, TypeError) as fault:
            wrong.append(f"{attributes['data-value']}: not in the JSON ({fault!r})")
            continue
        if f"{value:.{attributes['data-digits']}f}" != shown:
            wrong.append(f"{attributes['data-value']}: the page says {shown}, the JSON {value}")
    print(f"{len(page.figures)} figures, {len(wrong)} faults")
    print("\n".join(wrong))
    return 1 if wrong or not page.figures else 0


if __name__ == "__main__":
    sys.exit(main())
