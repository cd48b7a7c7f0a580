"""Checks that each promise of docs/elastic.md names where it is checked, and that this is there: check_promises.py SOURCE_DIR."""

import pathlib
import re
import sys

source = pathlib.Path(sys.argv[1])
page = (source / "docs/elastic.md").read_text()
numbers = re.findall(r"^\| (\d+) \|", (source / "docs/elastic-protocol.md").read_text(), re.M)
text = " ".join(page.split())
places = {"unit": "tests/unit/{}/{}_test.cpp", "cli": "tests/cli/{}_test.sh", "cluster": "tests/cluster/{}_test.sh", "python": "tests/python/{}_test.py"}
faults = []


def is_there(check: str) -> bool:
    kind, _, rest = check.partition(".")
    return check in numbers or (kind in places and (source / places[kind].format(*rest.split("."))).exists())


promises, used = [], set()
for line in (source / "tests/docs/elastic_promises.txt").read_text().splitlines():
    if line.startswith("#"):
        continue
    words, _, checks = line.rpartition(" | ")
    promises.append(words)
    if words not in text:
        faults.append(f"docs/elastic.md does not say: {words}")
    if checks.startswith("none: "):
        continue
    faults += [f"{words}: there is no {check}" for check in checks.split() if not is_there(check)]
    used.update(checks.split())
faults += [f"no promise has the number {number}" for number in numbers if number not in used and number != "8"]  # 8: of messages
for bullet in re.findall(r"^(?:- |\| `).*(?:\n  .*)*", page, re.M):
    if not any(words in " ".join(bullet.split()) for words in promises):
        faults.append(f"tests/docs/elastic_promises.txt has nothing of: {bullet}")
print("\n".join(faults))
sys.exit(bool(faults))
