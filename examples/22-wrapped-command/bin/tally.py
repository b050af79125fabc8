#!/usr/bin/env python3
"""A command like many others: it counts letters."""

import argparse
from collections import Counter

parser = argparse.ArgumentParser(prog="tally", description="Count the letters in some words.")
parser.add_argument("--top", metavar="N", type=int, default=3, help="how many letters to show (default: 3)")
parser.add_argument("--upper", action="store_true", help="show capital letters")
parser.add_argument("word", nargs="+", help="the words to count")
given = parser.parse_args()

text = "".join(given.word)
for letter, count in Counter(text.upper() if given.upper else text).most_common(given.top):
    print(letter, count)
