"""Writes sentences.gguf and sentences.json beside this file, by sentencepiece 0.2, gguf 0.19 and
tokenizers 0.23: the tokens of a small SentencePiece model as llama.cpp's convert_hf_to_gguf.py
writes them, and the ids of texts by a tokenizer.json with the merges, the normalizer and the
decoder that transformers makes of such a model. Where a text has no name of a token, sentencepiece
has to give the same.
"""

import io
import json
import pathlib

import gguf
import sentencepiece
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers

HERE = pathlib.Path(__file__).parent
MARK = "\u2581"
PROSE = """the quick brown fox jumps over the lazy dog and the dogs of the other fox.
  for (i = 0; i < 10; i++) { the_low[i] = lower + lowest; }
low lower lowest newer newest the café naïve größe 123 1234 2024 aaaa aaaaaa aaa
don't we'll they're = == === ---- ...... a b c    x        y  z""".split("\n")
TEXTS = [
    "", " ", "   ", "\n", "the lower dog", " the  low   fox    dog ", "aaaaaaa aaaaa 123",
    "caf\u00e9 e\u0301 \U0001f600 \u6f22\u5b57\n\tthe", "\x00\x7f\ufffd \u00a0x",
    "low\u2581low", "<s>the</s> low", "the<s>low <s> low</s>", "<unk>the<0x0A><0x41>",
    "<user>the <user> low<user>",
]
NAMES = ["<s>", "</s>", "<unk>", "<user>"]


def learn():
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(PROSE * 4), model_writer=out, model_type="bpe", vocab_size=380,
        byte_fallback=True, user_defined_symbols=["<user>"], num_threads=1,
        normalization_rule_name="identity", remove_extra_whitespaces=False,
        allow_whitespace_only_pieces=True, minloglevel=2)
    return sentencepiece.SentencePieceProcessor(model_proto=out.getvalue())


def kind(sp, i):
    return (2 if sp.is_unknown(i) else 3 if sp.is_control(i) else 6 if sp.is_byte(i) else
            4 if sp.id_to_piece(i) in NAMES else 1)


SP = learn()
SIZE = SP.get_piece_size()
PIECES = [SP.id_to_piece(i) for i in range(SIZE)]
KINDS = [kind(SP, i) for i in range(SIZE)]


def peer(space):
    vocab = {name: i for i, name in enumerate(PIECES)}
    merges = []
    for name, i in vocab.items():
        splits = [(name[:k], name[k:]) for k in range(1, len(name))]
        splits = [s for s in splits if s[0] in vocab and s[1] in vocab]
        merges += [(-SP.get_score(i), vocab[s[0]], vocab[s[1]], s) for s in splits]
    t = Tokenizer(models.BPE(vocab, [m[-1] for m in sorted(merges)], unk_token="<unk>",
                             fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence(
        ([normalizers.Prepend(MARK)] if space else []) + [normalizers.Replace(" ", MARK)])
    t.decoder = decoders.Sequence(
        [decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse()] +
        ([decoders.Strip(" ", 1, 0)] if space else []))
    t.add_special_tokens([AddedToken(n, normalized=False) for n in NAMES[:3]])
    t.add_tokens([AddedToken(n, normalized=False) for n in NAMES[3:]])
    return t


w = gguf.GGUFWriter(HERE / "sentences.gguf", "llama")
w.add_tokenizer_model("llama")
w.add_tokenizer_pre("default")
w.add_token_list([name.encode() for name in PIECES])
w.add_token_scores([SP.get_score(i) for i in range(SIZE)])
w.add_token_types(KINDS)
w.add_bos_token_id(1)
w.add_eos_token_id(2)
w.add_unk_token_id(0)
w.write_header_to_file()
w.write_kv_data_to_file()
w.close()

rows = {}
for space in [True, False]:
    t = peer(space)
    ids = [t.encode(text, add_special_tokens=False).ids for text in TEXTS]
    rows["space" if space else "none"] = {
        "ids": ids, "decoded": [t.decode(i, skip_special_tokens=False) for i in ids]}
    for text, row in zip(TEXTS, ids):
        if space and not any(name in text for name in NAMES):
            assert SP.encode(text) == row, (text, SP.encode(text), row)
(HERE / "sentences.json").write_text(
    json.dumps({"texts": TEXTS, **rows}, separators=(",", ":")) + "\n")
