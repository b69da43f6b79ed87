"""Writes splits.json: how the library tokenizers cuts texts, by pre_tokenizers of public models.

    python -P splits.py > splits.json

The file in the repository was made with tokenizers 0.23.3.
"""

import json

from tokenizers import Tokenizer, models

CONTRACTED = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
BEFORE = r"[^\r\n\p{L}\p{N}]?"
CASED = [BEFORE + UPPER + "*" + LOWER + "+", BEFORE + UPPER + "+" + LOWER + "*"]
CASED_REST = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"

PATTERNS = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "llama3": CONTRACTED + "|" + BEFORE + r"\p{L}+|\p{N}{1,3}|" + REST,
    "qwen2": CONTRACTED + "|" + BEFORE + r"\p{L}+|\p{N}|" + REST,
    "qwen3.5": CONTRACTED + "|" + BEFORE + r"[\p{L}\p{M}]+|\p{N}|" +
               REST.replace(r"\s\p{L}", r"\s\p{L}\p{M}", 1),
    "gpt-4o": "|".join(part + CONTRACTED + "?" for part in CASED) + r"|\p{N}{1,3}|" + CASED_REST,
    "tekken": "|".join(CASED) + r"|\p{N}|" + CASED_REST,
    "numbers": r"\p{N}{1,3}",
    "han": "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    "deepseek": r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?""" +
                r"[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "lines": r"[\r\n]",
    "latin": "\\s?[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf]+",
    "signs": "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+",
    "blank ends": r"\s+$",
    "blanks": r"\s+(?!\S)|\s+",
    "digits": r"\d+|\S",
}

TEXTS = [
    " ", "   ", "\n", "the low  Lower   loWER LOW", "it's IT'S we'LL 'S'\u017f don't've",
    "a\n\n  b\r\n\tc \n  \n", "1234567 12x34 \u2167\u00bd\u00b2x\uff13\uff14 5", "tail  ", "  head",
    "caf\u00e9 cafe\u0301 na\u00efve \u01c5 \u01bb\u02b0x", "\u00a0x\u2003\u2003y\u3000\u3000z\u0085",
    "\u6f22\u5b57\u304b\u306a\u30ab\u30ca12 \ud55c\uad6d\uc5b4 \u0e44\u0e17\u0e22 \u0939\u093f\u0928",
    "x=y+z; // a/b/c\n\n#if (a[0] == '\\n') { return; }\r\n", "\u201cq\u201d \u2014 \uff01\uff1f\u3002 $5 \u20ac6",
    "\U0001f469\u200d\U0001f469 the!?", "\x00\x1f\x7f\x1c\u200b", "''''s''ll  's", "a \n b\n \nc   \n",
    "camelCaseHTTPServer _snake_case __init__.py", "\u2028a\u2029 b\x0b\x0c c",
]


def split(name, behavior="Isolated"):
    return {"type": "Split", "pattern": {"Regex": PATTERNS[name]}, "behavior": behavior,
            "invert": False}


def string(text, behavior):
    return {"type": "Split", "pattern": {"String": text}, "behavior": behavior, "invert": False}


def sequence(*parts):
    return {"type": "Sequence", "pretokenizers": list(parts)}


DIGITS = {"type": "Digits", "individual_digits": True}
CASES = [split(name) for name in PATTERNS]
CASES += [split(name, how) for name in ("numbers", "latin", "blanks")
          for how in ("MergedWithNext", "MergedWithPrevious")]
CASES += [string(" ", how) for how in ("Isolated", "MergedWithNext", "MergedWithPrevious")]
CASES += [
    sequence(split("numbers"), split("han"), split("deepseek")),
    sequence(split("lines"), split("latin"), split("signs"), split("blank ends"), split("han"),
             DIGITS),
]


def pieces(case):
    whole = {"version": "1.0", "pre_tokenizer": case, "model": json.loads(
        Tokenizer(models.BPE()).to_str())["model"]}
    peer = Tokenizer.from_str(json.dumps(whole)).pre_tokenizer
    return [[piece for piece, _ in peer.pre_tokenize_str(text)] for text in TEXTS]


print('{"texts":' + json.dumps(TEXTS) + ',\n"cases":[\n' + ",\n".join(
    json.dumps({"by": case, "pieces": pieces(case)}, separators=(",", ":"))
    for case in CASES) + "\n]}")
