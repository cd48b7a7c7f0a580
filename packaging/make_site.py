#!/usr/bin/env python3
"""make_site.py SOURCE MAN OUT: renders README, docs/ and the man pages of the folder MAN (or "") as a site with search in the folder OUT, by mkdocs.

The documents are written for GitHub; what Python's Markdown reads in another way is changed on the way. Then every link of the site is followed: to pages, files
and headings. Prints the number of pages and links, and ends 1 with those that lead nowhere, 77 where there is no mkdocs.
"""
import collections
import html.parser
import logging
import pathlib
import re
import shutil
import sys
import urllib.parse

try:
    from mkdocs.commands.build import build
    from mkdocs.config import load_config
except ImportError:
    print("no mkdocs here; install it by ./bootstrap.sh docs")
    sys.exit(77)

BESIDES = ["LICENSE", "examples", "bench/results", "README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs"]
STYLE = """
table { display: block; overflow-x: auto }
th, td { min-width: 5em }
.navbar.bg-primary { background-color: #2b4a63 !important }
.navbar .nav-link { padding-left: 0.4rem !important; padding-right: 0.4rem !important; font-size: 0.9rem } /* one row on a screen of 1280 */
:not(pre) > code { white-space: nowrap } /* else options are divided at their hyphens */
@media (max-width: 600px) { p > code, li > code { white-space: normal } }
"""


def github_id(text, separator="-"):
    """A heading's name in links, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", separator)


def readable(text):
    """GitHub's Markdown as Python's: a list after a paragraph begins behind an empty line, marks of the tests are left out."""
    text = re.sub(r"^<!--.*?-->\n", "", text, flags=re.M | re.S)
    lines, in_code = [], False
    for line in text.split("\n"):
        in_code ^= line.lstrip().startswith("```")
        item = r"\s*([-*]|\d+\.) "
        if not in_code and re.match(item, line) and lines and lines[-1].strip() and not re.match(item + r"|\s", lines[-1]):
            lines.append("")
        lines.append(line)
    return "\n".join(lines)


def manual_page(text):
    """A man page's source: its title from the lines for lowdown, its headings a level lower."""
    head, _, body = text.partition("\n\n")
    title = re.search(r"^title: *(\S+)", head, flags=re.M)
    return f"# {title[1].lower() if title else 'man page'}\n\n" + re.sub(r"^(#+ )(.*)", r"#\1\2", body, flags=re.M)


def stage(source, man, folder):
    """The tree that mkdocs reads. Links keep their places, since the tree is the repository's."""
    for name in BESIDES:
        if (source / name).is_dir():
            shutil.copytree(source / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source / name, folder / name)
    for page in folder.rglob("*.md"):
        page.write_text(readable(page.read_text()).replace("](../examples)", "](../examples/README.md)"))
    (folder / "site.css").write_text(STYLE)
    (folder / "man").mkdir()
    for page in man.glob("*.md") if man else []:
        (folder / "man" / page.name).write_text(manual_page(page.read_text()))
    for name, title, files in (("examples", "Examples", "*.py"), ("man", "Man pages", "*.md")):
        items = "".join(f"- [{each.stem if name == 'man' else each.name}]({each.name})\n" for each in sorted((folder / name).glob(files)))
        (folder / name / "README.md").write_text(f"# {title}\n\n{items}")


def navigation(folder):
    """The sections of docs/README.md."""
    sections = collections.defaultdict(list)
    section = ""
    for row in (folder / "docs/README.md").read_text().splitlines():
        if heading := re.match(r"\| \*\*(.*)\*\* \|", row):
            section = heading[1]
        elif page := re.match(r"\| \[(.*?)\]\(([^)#]*)\)", row):
            path = "docs/" + page[2] if not page[2].startswith("../") else page[2][3:]
            sections[section].append({page[1]: path})
    pages = [{"muster": "README.md"}, {"All documents": "docs/README.md"}, *({name: list(rows)} for name, rows in sections.items())]
    return [*pages, {"Man pages": "man/README.md"}]


class Page(html.parser.HTMLParser):
    """The links and the names of a page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.names = [], set()
        self.feed(path.read_text(errors="replace"))

    def handle_starttag(self, tag, attributes):
        for key, value in attributes:
            if key in ("href", "src") and value:
                self.links.append(value)
            elif key in ("id", "name") and value:
                self.names.add(value)


def broken_links(site):
    """Links that lead to no file or heading of the site, or to another machine for what a page is made of; and how many there are."""
    pages = {path: Page(path) for path in site.rglob("*.html")}
    broken, count = [], 0
    for path, page in pages.items():
        for link in page.links:
            count += 1
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc or path.name == "404.html":
                continue
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                broken.append(f"{path.relative_to(site)}: {link}: no such file")
            elif parts.fragment and target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].names:
                broken.append(f"{path.relative_to(site)}: {link}: no such heading")
    return broken, len(pages), count


def main():
    if len(sys.argv) != 4:
        sys.exit("write make_site.py SOURCE MAN OUT")
    source, out = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[3]).resolve()
    staged = out.with_name(out.name + "-source")
    for folder in (staged, out):
        shutil.rmtree(folder, ignore_errors=True)
    staged.mkdir(parents=True)
    stage(source, pathlib.Path(sys.argv[2]) if sys.argv[2] else None, staged)
    logging.getLogger("mkdocs").setLevel(logging.ERROR)
    settings = {
        "site_name": "muster",
        "docs_dir": str(staged),
        "site_dir": str(out),
        "theme": {"name": "mkdocs", "highlightjs": False, "navigation_depth": 3},
        "nav": navigation(staged),
        "extra_css": ["site.css"],
        "use_directory_urls": False,  # so that it can be read without a server
        "plugins": ["search"],
        "markdown_extensions": ["tables", "fenced_code", "def_list", "sane_lists", {"toc": {"slugify": github_id}}],
    }
    file = staged.with_suffix(".yml")
    file.write_text("site_name: muster\n")
    build(load_config(str(file), **settings))
    file.unlink()
    shutil.rmtree(staged)
    broken, pages, links = broken_links(out)
    print("\n".join(broken + [f"{pages} pages, {links} links, {len(broken)} of them broken: {out}/index.html"]))
    sys.exit(1 if broken else 0)


main()
