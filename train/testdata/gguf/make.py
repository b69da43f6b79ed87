"""Writes the files beside this one, by the gguf library for Python (0.19) and tokenizers (0.23).

Tensors are those that llama.cpp's convert_hf_to_gguf.py writes: of llama the rows of queries and
keys are in pairs, of gpt2 matrices are turned. The number i of a tensor is a function of the
name that it has in a public checkpoint, and of i: see numbers. tokens.json has the ids of texts.
"""

import json
import pathlib
import zlib

import gguf
import numpy as np
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).parent
TRIPLES = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
           r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
CUTS = {"llama-bpe": TRIPLES, "qwen2": TRIPLES.replace("{1,3}", ""), "gpt-2": None}
TEXTS = ["the cat sat on the mat", "it's 12345 then\n\n  <|end|>they", "Ä e\u0301 \U0001f600"]
WIDTH, HIDDEN, VOCAB = 16, 24, 272


def numbers(name, *shape):
    i = np.arange(int(np.prod(shape)), dtype=np.int64)
    return (((i * 37 + zlib.crc32(name.encode()) % 251) % 251 - 125) / 256).astype(
        np.float32).reshape(shape)


def vocabulary(pre):
    t = Tokenizer(models.BPE(ignore_merges=pre == "llama-bpe"))
    pattern = CUTS[pre]
    rest = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pattern is None)
    t.pre_tokenizer = rest if pattern is None else pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(pattern), "isolated"), rest])
    if pre == "qwen2":
        t.normalizer = normalizers.NFC()
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(["the cat the mat they then sat on on 12 123"] * 4, trainers.BpeTrainer(
        vocab_size=268, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False))
    t.add_special_tokens(["<|start|>", "<|end|>"])
    return t


def write_vocabulary(w, pre):
    t = vocabulary(pre)
    model = json.loads(t.to_str())["model"]
    names = {i: name for name, i in t.get_vocab().items()}
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre(pre)
    w.add_token_list([names.get(i, f"[PAD{i}]") for i in range(VOCAB)])
    w.add_token_types([1 if i < 268 else 3 if i in names else 5 for i in range(VOCAB)])
    w.add_token_merges([" ".join(m) for m in model["merges"]])
    w.add_bos_token_id(268)
    w.add_eos_token_id(269)
    if pre == "qwen2":
        w.add_add_bos_token(False)
    return [t.encode(text, add_special_tokens=False).ids for text in TEXTS]


def paired(x, heads):
    return x.reshape(heads, 2, x.shape[0] // heads // 2, *x.shape[1:]).swapaxes(1, 2).reshape(
        x.shape)


def llama(arch, pre, file=None):
    w = gguf.GGUFWriter(HERE / f"{file or arch}.gguf", arch)
    size = 4 if arch == "qwen2" else 8
    mixtral, experts = file == "mixtral", 3 if file else 0
    w.add_block_count(1)
    w.add_context_length(64)
    w.add_embedding_length(WIDTH)
    w.add_feed_forward_length(HIDDEN)
    w.add_head_count(4)
    w.add_head_count_kv(2)
    w.add_rope_freq_base(5e5)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_vocab_size(VOCAB)
    w.add_file_type(0)
    if experts:
        w.add_expert_count(experts)
        w.add_expert_used_count(2)
        if not mixtral:
            w.add_expert_feed_forward_length(HIDDEN)
    if arch == "llama":
        w.add_rope_dimension_count(size)
    if arch != "qwen2":
        w.add_key_length(size)
        w.add_value_length(size)
    ids = write_vocabulary(w, pre)

    def put(to, name, *shape, heads=0):
        x = numbers(name, *shape)
        w.add_tensor(to, paired(x, heads) if heads and arch == "llama" else x)

    put("token_embd.weight", "model.embed_tokens.weight", VOCAB, WIDTH)
    layer, block = "model.layers.0.", "blk.0."
    for to, name, shape, heads in [
            ("attn_norm", "input_layernorm", (WIDTH,), 0),
            ("attn_q", "self_attn.q_proj", (4 * size, WIDTH), 4),
            ("attn_k", "self_attn.k_proj", (2 * size, WIDTH), 2),
            ("attn_v", "self_attn.v_proj", (2 * size, WIDTH), 0),
            ("attn_output", "self_attn.o_proj", (WIDTH, 4 * size), 0),
            ("ffn_norm", "post_attention_layernorm", (WIDTH,), 0),
            ("ffn_gate", "mlp.gate_proj", (HIDDEN, WIDTH), 0),
            ("ffn_up", "mlp.up_proj", (HIDDEN, WIDTH), 0),
            ("ffn_down", "mlp.down_proj", (WIDTH, HIDDEN), 0)]:
        if experts and to in ("ffn_gate", "ffn_up", "ffn_down"):
            place, names = "mlp", {}
            if mixtral:
                place, names = "block_sparse_moe", {"gate_proj": "w1", "up_proj": "w3",
                                                    "down_proj": "w2"}
            one = names.get(name[4:], name[4:])
            w.add_tensor(f"{block}{to}_exps.weight", np.stack([
                numbers(f"{layer}{place}.experts.{i}.{one}.weight", *shape)
                for i in range(experts)]))
            if to == "ffn_gate":
                put(f"{block}ffn_gate_inp.weight", f"{layer}{place}.gate.weight", experts, WIDTH)
            continue
        put(f"{block}{to}.weight", f"{layer}{name}.weight", *shape, heads=heads)
        if heads and arch == "qwen2" or to == "attn_v" and arch == "qwen2":
            put(f"{block}{to}.bias", f"{layer}{name}.bias", shape[0])
        if heads and arch in ("qwen3", "qwen3moe"):
            put(f"{block}{to}_norm.weight", f"{layer}{name[:-4]}norm.weight", size)
    put("output_norm.weight", "model.norm.weight", WIDTH)
    if arch == "llama" and not experts:  # tied, and scaled as LLaMA 3.1 is
        w.add_tensor("rope_freqs.weight", factors(5e5, 8, 1, 4, 8192, size))
    else:
        put("output.weight", "lm_head.weight", VOCAB, WIDTH)
    finish(w)
    return ids


def factors(base, factor, low, high, past, size):
    out = []
    for i in range(0, size, 2):
        turns = past * base ** (-i / size) / (2 * np.pi)
        share = (turns - low) / (high - low)
        out.append(1 if turns > high else factor if turns < low else
                   1 / ((1 - share) / factor + share))
    return np.array(out, dtype=np.float32)


def gpt2():
    w = gguf.GGUFWriter(HERE / "gpt2.gguf", "gpt2")
    w.add_block_count(1)
    w.add_context_length(32)
    w.add_embedding_length(WIDTH)
    w.add_feed_forward_length(HIDDEN)
    w.add_head_count(2)
    w.add_layer_norm_eps(1e-5)
    ids = write_vocabulary(w, "gpt-2")
    w.add_tensor("token_embd.weight", numbers("wte.weight", VOCAB, WIDTH))
    w.add_tensor("position_embd.weight", numbers("wpe.weight", 32, WIDTH))
    for to, name, shape in [
            ("attn_norm", "ln_1", (WIDTH,)), ("attn_qkv", "attn.c_attn", (WIDTH, 3 * WIDTH)),
            ("attn_output", "attn.c_proj", (WIDTH, WIDTH)), ("ffn_norm", "ln_2", (WIDTH,)),
            ("ffn_up", "mlp.c_fc", (WIDTH, HIDDEN)), ("ffn_down", "mlp.c_proj", (HIDDEN, WIDTH))]:
        x = numbers(f"h.0.{name}.weight", *shape)
        w.add_tensor(f"blk.0.{to}.weight", np.ascontiguousarray(x.T))
        w.add_tensor(f"blk.0.{to}.bias", numbers(f"h.0.{name}.bias", shape[-1]))
    for kind in ["weight", "bias"]:
        w.add_tensor(f"output_norm.{kind}", numbers(f"ln_f.{kind}", WIDTH))
    finish(w)
    return ids


def finish(w):
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


ids = {arch: llama(arch, pre)
       for arch, pre in [("llama", "llama-bpe"), ("qwen2", "qwen2"), ("qwen3", "qwen2")]}
ids["gpt2"] = gpt2()
ids["mixtral"] = llama("llama", "llama-bpe", "mixtral")
ids["qwen3moe"] = llama("qwen3moe", "qwen2", "qwen3moe")
(HERE / "tokens.json").write_text(json.dumps({"texts": TEXTS, "ids": ids}, separators=(",", ":"))
                                  + "\n")
