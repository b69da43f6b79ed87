"""Byte-level BPE as GPT-2's published encoder has it, over a tokenizer.json.

Reads a line {"file": PATH, "pattern": NAME, "texts": [...]} and writes a line
{"ids": [...], "chunks": [...]}. The module re has no \\p{L}: classes are made of
the characters that occur.
"""

import json
import re
import sys
import unicodedata

PATTERNS = {
    "gpt2": r"""'s|'t|'re|'ve|'m|'ll|'d| ?L+| ?N+| ?O+|S+(?!T)|S+""",
    "triple": r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|P?L+|N{1,3}| ?O+[\r\n]*|S*[\r\n]+|S+(?!T)|S+""",
    "digit": r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|P?L+|N| ?O+[\r\n]*|S*[\r\n]+|S+(?!T)|S+""",
}


def members(texts, accept):
    chars = sorted({c for t in texts for c in t if accept(c)})
    return "[" + "".join(re.escape(c) for c in chars) + "\uffff]"


def compiled(name, texts):
    letter = lambda c: unicodedata.category(c)[0] == "L"
    number = lambda c: unicodedata.category(c)[0] == "N"
    space = lambda c: c in " \t\n\r\x0b\x0c\x85\u00a0\u2003\u3000"
    classes = {
        "L": members(texts, letter),
        "N": members(texts, number),
        "S": members(texts, space),
        "T": members(texts, lambda c: not space(c)),
        "O": members(texts, lambda c: not (letter(c) or number(c) or space(c))),
        "P": members(texts, lambda c: not (letter(c) or number(c) or c in "\r\n")),
    }
    return re.compile("".join(classes.get(c, c) for c in PATTERNS[name]))


def letters():
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [b for b in range(256) if b not in visible]
    table = {b: chr(b) for b in visible}
    table.update({b: chr(256 + i) for i, b in enumerate(hidden)})
    return table


def bpe(word, ranks):
    while len(word) > 1:
        pair = min(zip(word, word[1:]), key=lambda p: ranks.get(p, 1 << 30))
        if pair not in ranks:
            break
        merged, i = [], 0
        while i < len(word):
            if i + 1 < len(word) and (word[i], word[i + 1]) == pair:
                merged.append(word[i] + word[i + 1])
                i += 2
            else:
                merged.append(word[i])
                i += 1
        word = merged
    return word


def main():
    table = letters()
    for line in sys.stdin:
        ask = json.loads(line)
        with open(ask["file"], encoding="utf-8") as f:
            model = json.load(f)["model"]
        ranks = {tuple(m): i for i, m in enumerate(model["merges"])}
        pattern = compiled(ask["pattern"], ask["texts"])
        chunks = [pattern.findall(t) for t in ask["texts"]]
        ids = [[model["vocab"][s] for c in cs
                for s in bpe([table[b] for b in c.encode()], ranks)] for cs in chunks]
        print(json.dumps({"ids": ids, "chunks": chunks}), flush=True)


main()
