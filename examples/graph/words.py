"""The most frequent word; what it prints is the job's output, which sum.rhai reads."""
import collections

text = "the quick brown fox jumps over the lazy dog"
print(collections.Counter(text.split()).most_common(1)[0][0])
