"""Writes what NumPy makes of some arrays: python3 make.py"""
import numpy as np

n = np.arange(6).reshape(2, 3)
arrays = {t: (n * 3 - 5 if t[0] != "u" else n).astype(t)
          for t in ("float16", "float32", "float64", "int8", "int16", "int32", "int64",
                    "uint8", "uint16", "uint32", "uint64")}
arrays["bool"] = n % 2 == 0
arrays["scalar"] = np.float32(2.5)
arrays["vector"] = np.array([7], np.int32)
arrays["none"] = np.zeros((0, 4), np.float32)
np.savez("stored.npz", **arrays)
np.savez_compressed("compressed.npz", **arrays)
bad = {"fortran": np.asfortranarray(n.astype(np.float32)), "big": n.astype(">f4"),
       "long": n.astype(np.longdouble),
       "texts": np.array(["a", "bc"]), "complex": n.astype(np.complex64),
       "objects": np.array([None, 1], object),
       "structures": np.zeros(2, [("a", "f4"), ("b", "i4")])}
np.savez_compressed("refused.npz", **bad)
