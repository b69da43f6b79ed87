"""Writes values.gguf, with values and tensors of many types, by the gguf library (0.19).

Tensor i has the bytes i, i+1, … modulo 251.
"""

import pathlib

import gguf
import numpy as np

HERE = pathlib.Path(__file__).parent
V, Q = gguf.GGUFValueType, gguf.GGMLQuantizationType

w = gguf.GGUFWriter(HERE / "values.gguf", "test")
w.add_custom_alignment(64)
for kind, value in [
        (V.UINT8, 200), (V.INT8, -100), (V.UINT16, 60000), (V.INT16, -30000), (V.UINT32, 4 * 10**9),
        (V.INT32, -2 * 10**9), (V.FLOAT32, 0.1), (V.BOOL, True), (V.STRING, "h\u00e9"),
        (V.UINT64, 18 * 10**18), (V.INT64, -9 * 10**18), (V.FLOAT64, 0.1)]:
    w.add_key_value(f"one.{kind.name}", value, kind)
    w.add_key_value(f"many.{kind.name}", [value, value], V.ARRAY, sub_type=kind)
w.add_key_value("many.ARRAY", [[1, 2], [3]], V.ARRAY, sub_type=V.ARRAY)
for i, kind in enumerate(Q):
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    x = ((np.arange(6 * size) + i) % 251).astype(np.uint8).reshape(3, 2 * size)
    w.add_tensor(kind.name, x, raw_dtype=kind)
w.write_header_to_file()
w.write_kv_data_to_file()
w.write_tensors_to_file()
w.close()
