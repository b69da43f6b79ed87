"""Writes tokenizers.json: ids that the library tokenizers gives texts, by many a tokenizer.json.

    python -P tokenizers.py > tokenizers.json

The file in the repository was made with tokenizers 0.23.3. Vocabularies are the bytes by their
numbers, what merges make, and the added tokens.
"""

import json

from tokenizers import Tokenizer

VISIBLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
HIDDEN = [b for b in range(256) if b not in VISIBLE]
LETTERS = {b: chr(b) for b in VISIBLE}
LETTERS.update({b: chr(256 + i) for i, b in enumerate(HIDDEN)})

MERGES = [
    "l o", "lo w", "Ġ low", "Ã ©", "c a", "ca f", "caf Ã©", "Ġ caf", "1 2", "12 3", "123 4",
    "' s", "' l", "'l l", "Ġ Ġ", "Ċ Ċ", "- low", "Ġ -", "Ì ģ", "e Ìģ",
]

REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
MODERN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
PATTERNS = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "triple": MODERN + r"\p{N}{1,3}|" + REST,
    "digit": MODERN + r"\p{N}|" + REST,
}

TEXTS = [
    "", " ", "  ", "\n", "low", " low", "low low  low", "low-low 1234567x",
    "café café", "cafe\u0301 cafe\u0301", "it's IT'S we'll 'S'ſ", "a\n\n  b\r\n\tc \n ",
    "Ⅷ½²x３４ 5", "\u00a0x\u2003y\u3000z", "漢字かな 한국어 ไทย",
    "é e\u0301 \u0958 \ufb01 Å\u212b",
    "👩\u200d👩\u200d👧 low!?", "<|end|>low<|end|> <|end|>", "low<a>low <a> <<a>b <b",
    "x<e\u0301>y<é>",
    "-low --low\n-low", "\u1e9b\u0323 \uac00 \u1100\u1161", "\x00\x1f\x7f\u0085", "''''s''ll low's",
    "low low_ low\u0301 \u0e44low low\u200d. (low) lo x x  x", "a <|end|> \n <a \u3000<|end|>  ",
]


def level(space=False, regex=True):
    return {"type": "ByteLevel", "add_prefix_space": space, "trim_offsets": True,
            "use_regex": regex}


def split(name):
    return {"type": "Split", "pattern": {"Regex": PATTERNS[name]}, "behavior": "Isolated",
            "invert": False}


def digits(individual):
    return {"type": "Digits", "individual_digits": individual}


def sequence(*parts):
    return {"type": "Sequence", "pretokenizers": list(parts)}


def token(content, normalized=False, **more):
    return {"content": content, "normalized": normalized, "special": not normalized,
            "single_word": False, "lstrip": False, "rstrip": False, **more}


ENDS = [token("<|end|>")]
NFC = {"type": "NFC"}

CASES = {
    "gpt2": {"pre_tokenizer": level()},
    "without use_regex": {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False,
                                            "trim_offsets": True}},
    "no regex": {"pre_tokenizer": level(regex=False)},
    "prefix space": {"pre_tokenizer": level(space=True)},
    "prefix space, no regex": {"pre_tokenizer": level(space=True, regex=False)},
    "sequence of one": {"pre_tokenizer": sequence(level())},
    "triple": {"pre_tokenizer": sequence(split("triple"), level(regex=False))},
    "digit": {"pre_tokenizer": sequence(split("digit"), level(regex=False))},
    "split gpt2": {"pre_tokenizer": sequence(split("gpt2"), level(regex=False))},
    "triple and regex": {"pre_tokenizer": sequence(split("triple"), level())},
    "triple and prefix space": {"pre_tokenizer": sequence(split("triple"),
                                                          level(space=True, regex=False))},
    "triple, prefix space and regex": {"pre_tokenizer": sequence(split("triple"),
                                                                 level(space=True))},
    "each digit": {"pre_tokenizer": sequence(digits(True), level())},
    "digits, then digit": {"pre_tokenizer": sequence(digits(False), sequence(split("digit"),
                                                                            level()))},
    "qwen2": {"normalizer": NFC, "pre_tokenizer": sequence(split("digit"), level(regex=False))},
    "nfd": {"normalizer": {"type": "NFD"}, "pre_tokenizer": level()},
    "nfkc": {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKC"}]},
             "pre_tokenizer": level()},
    "nfkd": {"normalizer": {"type": "NFKD"}, "pre_tokenizer": level()},
    "no normalizers": {"normalizer": {"type": "Sequence", "normalizers": []},
                       "pre_tokenizer": level()},
    "no dropout": {"pre_tokenizer": level(), "model": {"dropout": 0.0}},
    "ignore merges": {"pre_tokenizer": level(), "model": {"ignore_merges": True}},
    "overlapping names": {"pre_tokenizer": level(), "added_tokens": [
        token("<<a", True), token("<a>"), token("a>b")]},
    "longest name": {"pre_tokenizer": level(space=True), "added_tokens": [
        token("<a"), token("<a>"), token("<|end|>", True)]},
    "names that take spaces": {"pre_tokenizer": level(), "added_tokens": [
        token("<|end|>", rstrip=True), token("<a", lstrip=True),
        token(" -", True, lstrip=True, rstrip=True)]},
    "names that are words": {"pre_tokenizer": level(space=True), "added_tokens": [
        token("low", single_word=True), token("lo", True, single_word=True),
        token("x", single_word=True, lstrip=True)]},
    "names in NFC": {"normalizer": NFC, "pre_tokenizer": level(), "added_tokens": [
        token("<e\u0301>"), token("f\u00e9", True), token("e\u0301 \u0958", True)]},
}


def file(case):
    vocab = {LETTERS[b]: b for b in range(256)}
    for merge in MERGES:
        vocab.setdefault(merge.replace(" ", ""), len(vocab))
    ids = dict(vocab)
    added = [{"id": ids.setdefault(a["content"], len(ids)), **a}
             for a in case.get("added_tokens", ENDS)]
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "",
             "end_of_word_suffix": "", "fuse_unk": False, "byte_fallback": False,
             **case.get("model", {}), "vocab": vocab, "merges": MERGES}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
            "normalizer": case.get("normalizer"), "pre_tokenizer": case["pre_tokenizer"],
            "post_processor": None, "decoder": level(), "model": model}


def main():
    rows = []
    for name, case in CASES.items():
        peer = Tokenizer.from_str(json.dumps(file(case)))
        parts = {k: v for k, v in file(case).items() if k not in ("model", "decoder", "version",
                                                                  "truncation", "padding")}
        ids = [peer.encode(text, add_special_tokens=False).ids for text in TEXTS]
        rows.append(json.dumps({"name": name, "file": parts, "model": case.get("model", {}),
                                "ids": ids}, separators=(",", ":")))
    print('{"texts":' + json.dumps(TEXTS) + ',\n"merges":' + json.dumps(MERGES) + ',\n"cases":[\n' +
          ",\n".join(rows) + "\n]}")


main()
