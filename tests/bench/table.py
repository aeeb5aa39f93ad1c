"""Prints the lines of lib/bench.py as a table: medians of the rounds, and their spread.

usage: table.py LINES
"""
import collections
import json
import statistics
import sys

rows = collections.defaultdict(lambda: collections.defaultdict(list))
peers = []
with open(sys.argv[1], encoding="utf-8") as lines:
    for line in map(json.loads, lines):
        if line["peer"] not in peers:
            peers.append(line["peer"])
        rows[line["measure"]][line["peer"]] += line.get("values", [])


def figure(value):
    return f"{value:,.0f}".replace(",", " ") if value >= 100 else f"{value:.3g}"


def cell(values):
    if not values:
        return "–"
    return f"{figure(statistics.median(values))} ({figure(min(values))}–{figure(max(values))})"


print("| measure |", " | ".join(peers), "|")
print("|---|" + "---:|" * len(peers))
for measure, of in rows.items():
    print(f"| {measure} |", " | ".join(cell(of[peer]) for peer in peers), "|")
