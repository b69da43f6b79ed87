"""Makes the files beside it, with numpy and gguf (0.19) for what others do.

    python make.py [library]

NAME.unpack: packed random rows of 1,024 elements, then what gguf unpacks them to, as float32. NF4 is
not gguf's: it is unpacked here, by its definition. numbers: 2,048 numbers as float32, drawn like
weights, the first blocks of special ones. NAME.pack: what packs them: gguf, but for q4_k and q6_k
the reference quantisers of ggml, in a shared library.
"""

import ctypes
import pathlib
import sys

import numpy as np
from gguf import quants
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as T

here = pathlib.Path(__file__).parent
draw = np.random.default_rng(3)
N = 1024
NF4 = np.array([-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453,
                -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0,
                0.07958029955625534, 0.16093020141124725, 0.24611230194568634,
                0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
                0.7229568362236023, 1.0], dtype=np.float32)
# Where blocks have numbers of binary16.
HALVES = {T.Q8_0: [0], T.Q4_0: [0], T.Q4_K: [0, 2], T.Q6_K: [208]}


def halves(count):
    """Finite ones of every magnitude: zeros, subnormals, negative ones."""
    h = draw.integers(0, 0x7c00, count) | (draw.integers(0, 2, count) << 15)
    h[:5] = [0, 0x8000, 1, 0x83ff, 0x7bff][:count]
    return h.astype(np.uint16)


def unpacked():
    for kind, at in HALVES.items():
        elements, size = GGML_QUANT_SIZES[kind]
        blocks = draw.integers(0, 256, (N // elements, size), dtype=np.uint8)
        for offset in at:
            blocks[:, offset:offset + 2] = halves(len(blocks)).view(np.uint8).reshape(-1, 2)
        yield kind.name.lower(), blocks.reshape(-1), quants.dequantize(blocks, kind)
    h = halves(N)
    yield "f16", h.view(np.uint8), h.view(np.float16).astype(np.float32)
    b = draw.integers(0, 0x7f80, N) | (draw.integers(0, 2, N) << 15)
    b = b.astype(np.uint16).view(np.uint8)
    yield "bf16", b, quants.dequantize(b.reshape(1, -1), T.BF16)
    yield "nf4", *nf4()


def nf4():
    header = np.array([0.125, 0.00314], dtype=np.float32)
    blocks = draw.integers(0, 256, (N // 64, 33), dtype=np.uint8)
    blocks[0, 0] = 0
    scale = header[0] + header[1] * blocks[:, :1].astype(np.float32)
    codes = np.concatenate([blocks[:, 1:] & 15, blocks[:, 1:] >> 4], axis=1)
    return np.concatenate([header.view(np.uint8), blocks.reshape(-1)]), NF4[codes] * scale


def numbers():
    x = draw.standard_normal((8, 256)) * np.exp(draw.standard_normal((8, 1))) * 0.02
    x[3, ::37] *= 8
    x[4] = draw.laplace(size=256)
    x[5] += 0.03
    x[6, :32] = 0
    x[6, 32:64] = 2e-7
    x[6, 64:96] -= 3
    x[6, 96] = 1e-40
    return x.astype(np.float32).reshape(-1)


def packed(x, library):
    for kind in T.Q8_0, T.Q4_0, T.BF16:
        yield kind.name.lower(), quants.quantize(x.reshape(1, -1), kind)
    yield "f16", x.astype(np.float16)
    for name in ["q4_K", "q6_K"] if library else []:
        out = np.zeros(GGML_QUANT_SIZES[T[name.upper()]][1] * len(x) // 256, dtype=np.uint8)
        pack = getattr(ctypes.CDLL(library), f"quantize_row_{name}_reference")
        pack(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(out.ctypes.data), len(x))
        yield name.lower(), out


def write(name, *arrays):
    (here / name).write_bytes(b"".join(a.tobytes() for a in arrays))


for name, blocks, elements in unpacked():
    write(name + ".unpack", blocks, elements.astype(np.float32))
source = numbers()
write("numbers", source)
for name, blocks in packed(source, sys.argv[1] if len(sys.argv) > 1 else None):
    write(name + ".pack", blocks)
