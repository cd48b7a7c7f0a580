"""Prints which rank `muster top --json` says keeps the others waiting; fails while no rank's waits are known."""
import json
import sys

run = json.load(open(sys.argv[1]))
if not any("waiting" in rank.get("waits", {}) for node in run["nodes"] for rank in node.get("ranks", [])):
    sys.exit(1)
print(" ".join(str(mark["rank"]) for mark in run["oddities"] if mark["kind"] == "awaited"))
