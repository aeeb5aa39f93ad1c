"""Runs as type python: standard output is the job's output, standard error its log."""
import collections
import os
import sys

text = os.environ.get("TEXT", "the quick brown fox jumps over the lazy dog the end")
counts = collections.Counter(text.split())
print("counting for job", os.environ["HERO_JOB_ID"], file=sys.stderr)
for word, count in counts.most_common(2):
    print(count, word)
