"""Writes characters.json: ids that the library tokenizers gives texts, and the texts of ids, by
vocabularies of characters, such as those that come of SentencePiece's models.

    python -P characters.py > characters.json

The file in the repository was made with tokenizers 0.23.3. The vocabulary is learnt from the text
below; merges are all pairs of tokens that are a token together, the earliest made first, as those
of LLaMA 2 and Mistral are made of a SentencePiece model.
"""

import json

from tokenizers import Tokenizer, models, trainers

MARK = "\u2581"
PROSE = """the quick brown fox jumps over the lazy dog and the dogs of the other fox.
  for (i = 0; i < 10; i++) { the_low[i] = lower + lowest; }
low lower lowest newer newest the café naïve größe 123 1234 2024 aaaa aaaaaa aaa
don't we'll they're = == === ---- ...... a b c    x        y  z""".split("\n")

TEXTS = [
    "", " ", "  ", "   ", "\n", "the", " the", "  the", "the ", "the  low   fox    dog ",
    "aaaaaaaaaaaaa aaaaa", "                      x", "\n\n the\n  low\r\n\tfox \n ",
    "low\u2581low \u2581 \u2581\u2581low", "café cafe\u0301 na\u00efve \u00c5\u212b",
    "漢字かな 한국어 ไทย", "👩\u200d👩\u200d👧 the!?", "\x00\x01\x1f\x7f\u0085\ufeff\ufffd",
    "é漢é漢 漢\né\n", "ÿÿÿ ÿ the ÿ", "1234567 12x34 Ⅷ½²３４ 5", "<s>the</s> low",
    "the<s>low <s> low</s>", "</s>", " <s> ", "<unk>the<0x0A><0x41>",
    "x<extra>y <extra> <extra>", "the<e\u0301>low<é>",
    " <|end|>\n the  <|end|><|end|> the,thethe \n",
    "\u00a0x\u2003y\u3000z", "don't===----......", "--\u2581-- == \u2581==",
]


def learn():
    tok = Tokenizer(models.BPE())
    trainer = trainers.BpeTrainer(vocab_size=160, show_progress=False, min_frequency=1)
    lines = [MARK + line.replace(" ", MARK) for line in PROSE]
    tok.train_from_iterator(lines * 2, trainer)
    learnt = json.loads(tok.to_str())["model"]["vocab"]
    tokens = sorted(learnt, key=learnt.get)
    vocab = {"<unk>": 0, "<s>": 1, "</s>": 2}
    vocab.update({"<0x%02X>" % b: 3 + b for b in range(256)})
    for name in tokens:
        if len(name) > 1:
            vocab[name] = len(vocab)
    for name in tokens:
        if len(name) == 1:
            vocab[name] = len(vocab)
    merges = []
    for name, made in vocab.items():
        splits = [(name[:i], name[i:]) for i in range(1, len(name))]
        merges += sorted(([l, r] for l, r in splits if l in vocab and r in vocab and made > 258),
                         key=lambda pair: (vocab[pair[0]], vocab[pair[1]]))
    return vocab, merges


VOCAB, MERGES = learn()


def sequence(kind, *parts):
    return {"type": "Sequence", kind: list(parts)}


def replace(old, new):
    return {"type": "Replace", "pattern": {"String": old}, "content": new}


def metaspace(**more):
    return {"type": "Metaspace", "replacement": MARK, **more}


def split(string, behavior):
    return {"type": "Split", "pattern": {"String": string}, "behavior": behavior, "invert": False}


def strip(start):
    return {"type": "Strip", "content": " ", "start": start, "stop": 0}


def token(name, normalized=False, special=True):
    return {"content": name, "normalized": normalized, "special": special, "single_word": False,
            "lstrip": False, "rstrip": False}


FALL, FUSE, NFC = {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "NFC"}
PREPEND = {"type": "Prepend", "prepend": MARK}
TO_MARKS, TO_SPACES = replace(" ", MARK), replace(MARK, " ")
LLAMA = {"normalizer": sequence("normalizers", PREPEND, TO_MARKS),
         "decoder": sequence("decoders", TO_SPACES, FALL, FUSE, strip(1))}
GEMMA = {"normalizer": TO_MARKS, "pre_tokenizer": split(" ", "MergedWithPrevious"),
         "decoder": sequence("decoders", TO_SPACES, FALL, FUSE)}
DIGITS = {"type": "Digits", "individual_digits": True}
PHI = [{**token("<|end|>"), "rstrip": True}, {**token("the", special=False), "single_word": True}]
MORE = [token("<extra>", special=False), token("<e\u0301>", True, False)]


def spaced(decoder=None, **more):
    return {"pre_tokenizer": metaspace(**more),
            "decoder": decoder or sequence("decoders", metaspace(**more), FALL, FUSE)}


CASES = {
    "llama 2": LLAMA,
    "llama 2, names in their form": {**LLAMA, "normalized": True},
    "llama 2, a new metaspace": spaced(LLAMA["decoder"], prepend_scheme="first", split=False),
    "gemma": GEMMA,
    "more names": {**LLAMA, "more": MORE},
    "phi 3": {**LLAMA, "more": PHI},
    "nfc": {**LLAMA, "more": MORE,
            "normalizer": sequence("normalizers", NFC, PREPEND, TO_MARKS)},
    "marks before there is one": {**LLAMA, "normalizer": sequence(
        "normalizers", TO_MARKS, sequence("normalizers", PREPEND, NFC))},
    "old metaspace": spaced(add_prefix_space=True),
    "metaspace": spaced(),
    "metaspace, first": spaced(prepend_scheme="first"),
    "metaspace, never": spaced(prepend_scheme="never"),
    "metaspace, no split": spaced(prepend_scheme="always", split=False),
    "metaspace and no more": spaced(metaspace()),
    "digits and metaspace": {**spaced(), "pre_tokenizer": sequence(
        "pretokenizers", DIGITS, metaspace(prepend_scheme="first"))},
    "metaspace and digits": {**spaced(), "pre_tokenizer": sequence(
        "pretokenizers", metaspace(), DIGITS)},
    "next": {**GEMMA, "pre_tokenizer": split(MARK, "MergedWithNext")},
    "previous": {**GEMMA, "pre_tokenizer": split(MARK, "MergedWithPrevious")},
    "isolated": {**GEMMA, "pre_tokenizer": split("==", "Isolated")},
    "without normalizer": {"decoder": sequence("decoders", FALL, FUSE, strip(2))},
    "no bytes": {**LLAMA, "model": {"byte_fallback": False}},
    "no bytes, not fused": {**LLAMA, "model": {"byte_fallback": False, "fuse_unk": False}},
    "nothing for what is unknown": {**LLAMA, "model": {"byte_fallback": False, "unk_token": None}},
    "bytes that have no token": {**LLAMA, "without": ["<0xC3>", "<0xE6>", "<0x0A>"]},
    "such, not fused": {**LLAMA, "without": ["<0xC3>", "<0xE6>", "<0x0A>"],
                        "model": {"fuse_unk": False}},
    "ignore merges": {**GEMMA, "model": {"ignore_merges": True},
                      "pre_tokenizer": split(MARK, "Isolated")},
}

# What ids alone can be: bytes that are no text, alone and beside some that are.
BYTES = [[3 + 0xE6], [3 + 0xE6, 3 + 0xBC, 3 + 0xA2], [3 + 0xE6, 3 + 0xBC, 3 + 0xA2, 3 + 0xE6],
         [3 + 0x41, 3 + 0xFF, 3 + 0x42], [3 + 0xC3, 259, 3 + 0xA9], [3 + 0x20, 259],
         [259, 3 + 0xC3, 3 + 0xA9, 0, 3 + 0xA9]]


def file(case):
    vocab = {name: i for name, i in VOCAB.items() if name not in case.get("without", [])}
    normalized = case.get("normalized", False)
    names = ["<unk>", "<s>", "</s>"]
    added = [{"id": i, **token(name, normalized)} for i, name in enumerate(names)]
    added += [{"id": len(VOCAB) + i, **a} for i, a in enumerate(case.get("more", []))]
    model = {"type": "BPE", "dropout": None, "unk_token": "<unk>",
             "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": True,
             "byte_fallback": True, "ignore_merges": False, **case.get("model", {}),
             "vocab": vocab, "merges": MERGES}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
            "normalizer": case.get("normalizer"), "pre_tokenizer": case.get("pre_tokenizer"),
            "post_processor": None, "decoder": case["decoder"], "model": model}


def rows():
    for name, case in CASES.items():
        whole = file(case)
        peer = Tokenizer.from_str(json.dumps(whole))
        ids = [peer.encode(text, add_special_tokens=False).ids for text in TEXTS]
        bare = [] if "without" in case else BYTES
        decoded = [peer.decode(i, skip_special_tokens=False) for i in ids + bare]
        parts = {k: whole[k] for k in ("added_tokens", "normalizer", "pre_tokenizer", "decoder")}
        model = {k: v for k, v in whole["model"].items() if k not in ("vocab", "merges")}
        yield {"name": name, "file": parts, "model": model, "without": case.get("without", []),
               "ids": ids, "decoded": decoded}


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True)


print('{"texts":' + compact(TEXTS) + ',\n"bytes":' + compact(BYTES) + ',\n"vocab":' +
      compact(VOCAB) + ',\n"merges":' + compact(MERGES) + ',\n"cases":[\n' +
      ",\n".join(compact(row) for row in rows()) + "\n]}")
