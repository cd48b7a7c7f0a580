"""Prints which rank `muster top --json` marks as one that keeps the others waiting; fails while no rank's waits are known."""
import json
import sys

ranks = [rank for node in json.load(open(sys.argv[1]))["nodes"] for rank in node.get("ranks", [])]
if not any("waiting" in rank.get("waits", {}) for rank in ranks):
    sys.exit(1)
print(" ".join(str(rank["rank"]) for rank in ranks if any(mark["kind"] == "awaited" for mark in rank.get("oddities", []))))
